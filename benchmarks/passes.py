"""Time X w, X' g and the fused pass against scipy and BLAS on one thread, as a Markdown table."""

import os
import time

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from bmrm import _core

REPEATS = 25


def best_of(calls, repeats=REPEATS):
    """Best time in ms of each call; the calls take turns, so that a busy moment hits all of them."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: 1e3 * seconds for name, seconds in best.items()}


def text(rng, m, d, k, dtype=np.float64):
    columns = np.minimum((d * rng.random(m * k) ** 3).astype(np.int32), d - 1)
    ends = np.arange(0, m * k + 1, k, dtype=np.int32)
    X = sp.csr_array((rng.random(m * k).astype(dtype), columns, ends), shape=(m, d))
    X.sum_duplicates()
    return X


def data_sets(rng):
    yield "CSR text f64", text(rng, 40000, 47000, 88)
    yield "CSR text f32", text(rng, 40000, 47000, 88, np.float32)
    yield "CSR short rows f64", text(rng, 400000, 54, 12)
    yield "CSR short rows f32", text(rng, 400000, 54, 12, np.float32)
    for d, m in ((54, 400000), (784, 30000)):
        for dtype in (np.float64, np.float32):
            yield f"dense {d} {'f64' if dtype is np.float64 else 'f32'}", rng.random((m, d)).astype(dtype)


def matrix_of(X):
    if sp.issparse(X):
        indices = X.indices.astype(np.int32, copy=False)
        return _core.csr(X.data, indices, X.indptr.astype(np.int64), X.shape[1])
    return _core.dense(X)


def calls_for(X, rng):
    m, d = X.shape
    M = matrix_of(X)
    w, g, y = rng.normal(size=d), rng.normal(size=m), np.sign(rng.normal(size=m))
    f, slopes, gradient = np.zeros(m), np.zeros(m), np.zeros(d)
    w_ref, g_ref, XT = w.astype(X.dtype), g.astype(X.dtype), X.T
    hinge = _core.scalar_loss("hinge")
    calls = {"dot ref": lambda: X @ w_ref, "tdot ref": lambda: XT @ g_ref}
    for t in (1, 2):
        calls[f"dot {t}"] = lambda t=t: M.dot(w, f, t)
        calls[f"tdot {t}"] = lambda t=t: M.tdot(g, gradient, t)
        calls[f"eval {t}"] = lambda t=t: M.evaluate(hinge, w, 0.0, None, y, None, 1.0 / m, f, slopes, gradient, t)
    return M, calls


def size_of(X):
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


def bandwidth(rng):
    """GB/s of reading, the better of a plain sum (one thread) and X w on wide rows, which does little else.

    A plain sum reads one stream and is slower than four: taken alone it would give shares above 1.
    """
    X = rng.random((16384, 1024))
    M, w, f = _core.dense(X), rng.random(1024), np.zeros(16384)
    best = best_of({t: lambda t=t: M.dot(w, f, t) for t in (1, 2)} | {"sum": lambda: X.sum()}, 10)
    rate = {key: X.nbytes / 1e6 / ms for key, ms in best.items()}
    return rate | {t: max(rate[t], rate["sum"]) for t in (1, 2)}


def print_rows(name, X, rate, rng):
    M, calls = calls_for(X, rng)
    best = best_of(calls)
    best["eval ref"] = best["dot ref"] + best["tdot ref"]
    for what in ("dot", "tdot", "eval"):
        ref, one, two = best[f"{what} ref"], best[f"{what} 1"], best[f"{what} 2"]
        readings = 2 if what == "eval" and not M.fuses else 1
        share = [readings * size_of(X) / 1e6 / ms / rate[t] for t, ms in ((1, one), (2, two))]
        label = {"dot": "X w", "tdot": "X' g", "eval": "loss, fused" if M.fuses else "loss"}[what]
        print(
            f"| {name} | {label} | {ref:.2f} | {one:.2f} | {two:.2f} | {ref / one:.2f} | {ref / two:.2f} "
            f"| {one / two:.2f} | {share[0]:.0%} | {share[1]:.0%} |"
        )


def main():
    load = os.getloadavg()
    print("load average", *(f"{x:.2f}" for x in load), "- busy, read with care" if load[0] > 0.5 else "")
    rng = np.random.default_rng(0)
    with threadpool_limits(1):
        rate = bandwidth(rng)
        print(f"reading: {rate[1]:.1f} GB/s on one thread (plain sum {rate['sum']:.1f}), {rate[2]:.1f} on two")
        print("times in ms, best of", REPEATS, "- the reference of `loss` is its two products alone\n")
        print("| data | pass | ref | 1 thread | 2 threads | ref/1 | ref/2 | speedup | share 1 | share 2 |")
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        for name, X in data_sets(rng):
            print_rows(name, X, rate, rng)


if __name__ == "__main__":
    main()
