"""Real data: parsed once, then kept as arrays in the build folder."""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).parents[3]
BUILD = ROOT / "build" / "peers"


def folder():
    """The folder that BMRM_DATA names, or ../shared/data."""
    return Path(os.environ.get("BMRM_DATA", ROOT.parent / "shared" / "data"))


def kept(name, path, parse):
    """What parse(path) returned when it was first called; FileNotFoundError if there is no such file."""
    cache = BUILD / "data" / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(path)
    if not cache.exists() or cache.stat().st_mtime < path.stat().st_mtime:
        cache.parent.mkdir(parents=True, exist_ok=True)
        apart(store, cache, path, parse)
    with np.load(cache) as file:
        if "dense" in file:
            return file["dense"], file["y"]
        parts = file["data"], file["indices"], file["indptr"]
        return sp.csr_matrix(parts, shape=tuple(file["shape"])), file["y"]


def apart(function, *arguments):
    """Call in a process of its own: a parser may start threads, and processes are forked from this one later."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function(*arguments)
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"{function.__name__}{arguments} failed")


def store(cache, path, parse):
    """Parse and write."""
    X, y = parse(path)
    part = cache.with_suffix(".part.npz")
    if sp.issparse(X):
        X = sp.csr_matrix(X, dtype=np.float64)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        np.savez(part, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    else:
        np.savez(part, dense=np.ascontiguousarray(X, dtype=np.float64), y=y)
    part.replace(cache)
