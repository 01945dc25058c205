"""Rows of a .npy file, read when they are asked for."""

from __future__ import annotations

import os
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bmrm._errors import DataError


class NpyRows:
    """A matrix in a file, of which slices of rows can be taken.

    The file is read, not mapped: pages of mapped files count as resident, and systems map far more of them than are
    looked at.

    Parameters
    ----------
    path : Path
    """

    ndim = 2

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with warnings.catch_warnings(), path.open("rb") as file:
                warnings.simplefilter("ignore")
                self.shape, self._by_columns, self.dtype = _header(file)
                self._place, self._handle = file.tell(), os.dup(file.fileno())
        except FileNotFoundError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from error
        except (OSError, ValueError, SyntaxError, TypeError, OverflowError, EOFError) as error:
            raise DataError(f"{path}: not a readable .npy file ({error})") from error
        weakref.finalize(self, os.close, self._handle)
        self.itemsize = self.dtype.itemsize
        if self.dtype.kind not in "biuf" or len(self.shape) != 2:
            raise DataError(f"{path}: has type {self.dtype} and shape {self.shape}; expected a matrix of numbers")
        size = os.fstat(self._handle).st_size - self._place
        if size < self.itemsize * self.shape[0] * self.shape[1]:
            raise DataError(f"{path}: not a readable .npy file (its matrix has {size} bytes, which is too few)")

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        m, d = self.shape
        if not self._by_columns:
            return self._read(start * d, (stop - start) * d).reshape(stop - start, d)
        return np.stack([self._read(j * m + start, stop - start) for j in range(d)], axis=1)

    def _read(self, first: int, count: int) -> NDArray[Any]:
        part = np.empty(count, self.dtype)
        left, place = part.data.cast("B"), self._place + first * self.itemsize
        while len(left):
            got = os.preadv(self._handle, [left], place)
            if got == 0:
                raise DataError(f"{self.path}: the file ends at offset {place}")
            left, place = left[got:], place + got
        return part


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    return npy.read_array_header_1_0(file) if version == (1, 0) else npy.read_array_header_2_0(file)
