"""Sparse matrices of SciPy, imported when the first one is needed: that takes longer than the rest of the package."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.sparse import coo_array, csr_array, vstack

__all__ = ["coo_array", "csr_array", "issparse", "vstack"]


def issparse(x: Any) -> bool:
    """Whether x is a sparse matrix or array; there are none before SciPy's module is imported."""
    return "scipy.sparse" in sys.modules and bool(sys.modules["scipy.sparse"].issparse(x))


def __getattr__(name: str) -> Any:
    """Return what scipy.sparse has under that name."""
    if name in __all__:
        return getattr(import_module("scipy.sparse"), name)
    raise AttributeError(f"module 'bmrm._sparse' has no attribute {name!r}")
