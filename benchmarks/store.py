"""Training from a store larger than the memory allowed: resident memory, and speed against reading alone.

    python benchmarks/store.py [--gigabytes 8.4] [--memory 1GB] [--folder DIR] [--iterations 5]

Writes a dense float32 store of 1000 columns (deleted in the end), then prints two figures. Memory: the largest
RssAnon + RssFile of a `bmrm train` process, looked at every 10 ms, and the high-water mark the system kept. Speed:
bytes read in a second while a solver runs, against those of the same reader when nothing is computed; both after the
first pass, which also compares checksums.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import bmrm
from bmrm.data.memory import parse_bytes
from bmrm.data.store_writer import Piece, StoreWriter

COLUMNS = 1000
PIECE_ROWS = 8192
NAMES = (
    *("loss", "limit GB", "RssAnon + RssFile GB", "peak resident GB", "reading GB/s", "solving GB/s", "share"),
    *("iterations", "seconds"),
)


def write_store(path, n_bytes):
    """Normal numbers, the same in each piece but for the order of columns; labels by a plane, a tenth of them wrong."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=COLUMNS).astype(np.float32)
    left = n_bytes // (4 * COLUMNS)
    piece = rng.standard_normal((PIECE_ROWS, COLUMNS), dtype=np.float32)
    with path.open("wb") as file:
        writer = StoreWriter(file, single=True)
        while left > 0:
            X = np.roll(piece[:left], left, axis=1)
            y = np.where((X @ normal > 0) ^ (rng.random(len(X)) < 0.1), 1.0, -1.0)
            writer.add(Piece(X, y, columns=COLUMNS, origin="generated"))
            left -= len(X)
        writer.finish(None)
    return path.stat().st_size


def write_sparse_store(path, columns):
    """200 000 rows of 40 uniform numbers; labels by a plane and noise: many planes are needed."""
    rng, each, m = np.random.default_rng(0), 40, 10_000
    normal = rng.normal(size=columns)
    places = np.arange(each, dtype=np.int32) * (columns // each)
    with path.open("wb") as file:
        writer = StoreWriter(file, single=True)
        for _ in range(20):
            indices = np.sort(rng.integers(0, columns // each, size=(m, each), dtype=np.int32) + places)
            values = rng.random((m, each), dtype=np.float32)
            y = np.where((values * normal[indices]).sum(axis=1) + rng.normal(size=m) > 0, 1.0, -1.0)
            indptr = np.arange(0, m * each + 1, each, dtype=np.int64)
            writer.add(Piece((values.ravel(), indices.ravel(), indptr), y, columns=columns, origin="generated"))
        writer.finish(None)


def planes(folder):
    """Resident memory where planes would take more than the limit."""
    print("| regularizer | columns | limit GB | RssAnon + RssFile GB | iterations |\n|---|--:|--:|--:|--:|")
    for regularizer, columns, lam, iterations in (("l2", 200_000, 1e-6, 100), ("l1", 20_000, 1e-4, 60)):
        path = Path(folder) / "wide.store"
        write_sparse_store(path, columns)
        more = ("--regularizer", regularizer, "--lam", str(lam), "--tol", "1e-7")
        largest, _, run = trained(path, "400MB", "hinge", iterations, *more)
        print(f"| {regularizer} | {columns} | 0.40 | {largest / 1e9:.3f} | {run['iterations']} |", flush=True)


def resident_kinds(pid):
    """RssAnon + RssFile, and the high-water mark of all resident memory."""
    words = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    found = {word[0]: 1024 * int(word[1]) for word in words if len(word) == 3 and word[2] == "kB"}
    return found.get("RssAnon:", 0) + found.get("RssFile:", 0), found.get("VmHWM:", 0)


def trained(path, memory, loss, iterations, *more):
    """The largest resident memory of a training process, and what it says."""
    command = [
        sys.executable,
        "-m",
        "bmrm",
        "train",
        str(path),
        "--memory",
        memory,
        "--loss",
        loss,
        "--quiet",
        "--json",
    ]
    command += ["--max-iter", str(iterations), "--model", str(path.with_suffix(".bmrm")), *more]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    largest, mark = 0, 0
    while run.poll() is None:
        try:
            now, most = resident_kinds(run.pid)
        except (OSError, ValueError):  # it has just ended
            break
        largest, mark = max(largest, now), max(mark, most)
        time.sleep(0.01)
    answer = run.communicate()[0]
    if run.returncode not in (0, 3):  # 3: the iterations were too few for the tolerance
        raise RuntimeError(f"{' '.join(command)} ended with {run.returncode}")
    return largest, mark, json.loads(answer)


def rates(path, memory, loss, iterations):
    """Bytes in a second by reading alone, and while solving."""
    store = bmrm.Store(path, memory=memory)
    matrix, file = store.matrix, store.file
    matrix.each(lambda rows, block: None)  # compares checksums
    reading = rate(file, lambda: [matrix.each(lambda rows, block: None) for _ in range(2)])
    problem = bmrm.Problem(bmrm.LinearRisk(store, store.y, loss, intercept=True), "l2", 1e-4)
    solving = rate(file, lambda: bmrm.solve(problem, tol=1e-6, max_iter=iterations))
    return reading, solving, rate(file, lambda: matrix.each(lambda rows, block: None))


def rate(file, work):
    before, start = file.bytes_read, time.perf_counter()
    work()
    return (file.bytes_read - before) / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=8.4)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--planes", action="store_true", help="memory of many planes instead, on small stores")
    options = parser.parse_args()
    if options.planes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            planes(folder)
        return
    limit = parse_bytes(options.memory)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "large.store"
        start = time.perf_counter()
        size = write_store(path, int(options.gigabytes * 1e9))
        print(f"store of {size / 1e9:.2f} GB written in {time.perf_counter() - start:.0f} s\n")
        print(f"| {' | '.join(NAMES)} |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        for loss in ("hinge", "logistic"):
            largest, mark, run = trained(path, options.memory, loss, options.iterations)
            reading, solving, again = rates(path, options.memory, loss, options.iterations)
            alone = (reading + again) / 2
            print(
                f"| {loss} | {limit / 1e9:.2f} | {largest / 1e9:.3f} | {mark / 1e9:.3f} | {alone / 1e9:.2f} | "
                f"{solving / 1e9:.2f} | {solving / alone:.0%} | {run['iterations']} | {run['seconds']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
