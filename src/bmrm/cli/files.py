"""Files of the commands: what is read, where results go, and how labels are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bmrm
from bmrm._errors import DataError
from bmrm.data.arrays import load_array
from bmrm.data.dataset import Dataset


def read_data(
    path: Path, zero_based: str = "auto", n_features: int | None = None, threads: int | None = None
) -> Dataset:
    """Read a data file; the options apply to svmlight text only."""
    if path.suffix.lower() in (".npy", ".npz", ".store"):
        data = bmrm.read(path)
    else:
        first = {"auto": "auto", "true": True, "false": False}[zero_based]
        data = bmrm.read(path, zero_based=first, n_features=n_features, n_threads=threads)  # type: ignore[arg-type]
    if data.n_examples == 0:
        raise DataError(f"{path}: no examples")
    return data


def with_weights(data: Dataset, path: Path | None) -> Dataset:
    """Return the data with the weights of a .npy file, if one is given."""
    if path is None:
        return data
    if data.weight is not None:
        raise DataError(f"{path}: the data file has weights of its own")
    weight = load_array(path)
    if weight.shape != (data.n_examples,) or weight.dtype.kind not in "biuf":
        raise DataError(f"{path}: has type {weight.dtype} and shape {weight.shape}; expected {data.n_examples} numbers")
    return replace(data, weight=weight.astype(np.float64))


def named_columns(options: Any) -> list[str]:
    """Return which flags that name a column of a table are given."""
    return [name for name in ("target", "group", "weight") if getattr(options, name) is not None]


def plain_label(value: Any) -> Any:
    """Return a label or prediction as a number or text of Python, whole numbers as int."""
    plain = value.item() if isinstance(value, np.generic) else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain
