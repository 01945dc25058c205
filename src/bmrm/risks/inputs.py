"""What a linear risk is made of, checked: the loss, targets, weights and offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._traits import Trait
from bmrm.losses import Loss
from bmrm.losses import get as get_loss
from bmrm.risks.base import Array

OF_ROWS = frozenset({Trait.ROWS, Trait.DUAL_ROWS, Trait.CURVED_ROWS, Trait.COMPILED})


def made_loss(loss: Any) -> Loss:
    """Return the loss of that name; a loss passes through."""
    if isinstance(loss, str):
        return get_loss(loss)
    if not isinstance(loss, Loss):
        hint = f"; write {loss.__name__}()" if isinstance(loss, type) else ""
        raise ValueError(f"loss must be a Loss or its name, got {loss!r}{hint}")
    return loss


def raw_targets(y: Any, groups: Any, loss: Loss, m: int) -> tuple[Any, Any]:
    """Return targets and groups as the loss encodes them, as many as there are rows."""
    if y is None:
        if loss.needs_targets:
            raise ValueError(f"loss '{loss.name or type(loss).__name__}' needs targets y, got None")
        return np.zeros(m), groups
    if not loss.needs_targets:
        return np.zeros(m), groups
    if len(y) != m:
        raise ValueError(f"X has {m} rows, but there are {len(y)} targets")
    return y, groups


def row_vector(values: npt.ArrayLike, m: int, what: str, of: str = "row") -> Array:
    """Return one finite number for each row (or what else they are of), or raise an error that names what they are."""
    raw = np.asarray(values)
    if raw.dtype.kind not in "biuf":
        raise ValueError(f"{what} must be real numbers, one for each {of}, got an array of {raw.dtype}")
    array = np.ascontiguousarray(raw, dtype=np.float64)
    if array.shape != (m,):
        raise ValueError(f"{what} must have one number for each of the {m} {of}s, got shape {array.shape}")
    if not _core.all_finite(array):
        bad = np.flatnonzero(~np.isfinite(array))
        raise ValueError(f"{what} of {of} {bad[0]} is {array[bad[0]]}; it must be finite")
    return array


def normalized(sample_weight: npt.ArrayLike, m: int, of: str = "row") -> Array:
    """Return the sample weights divided by their sum."""
    weight = row_vector(sample_weight, m, "sample_weight", of)
    if weight.min() < 0.0:
        bad = np.flatnonzero(weight < 0.0)
        raise ValueError(f"sample_weight of {of} {bad[0]} is {weight[bad[0]]:g}; weights must be at least 0")
    largest = weight.max()
    if largest <= 0.0:
        raise ValueError(f"all sample weights are 0; at least one {of} must count")
    normalized: Array = weight / largest  # first, so that their sum cannot overflow
    normalized /= normalized.sum()
    return normalized


def traits_of(loss: Loss, compiled: bool, vectors: bool, streamed: bool) -> frozenset[Trait]:
    """Return what a linear risk can do: by its loss, by how that runs, and by where the rows are."""
    traits = loss.traits
    if compiled or vectors:
        traits |= {Trait.CACHED_LINE}
    if compiled:
        traits |= {Trait.COMPILED}
        if not loss.tilt:
            traits |= {Trait.ROWS, Trait.DUAL_ROWS}
            traits |= {Trait.CURVED_ROWS} if Trait.CURVATURE in loss.traits else frozenset()
    return traits - OF_ROWS if streamed else traits
