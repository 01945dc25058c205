"""Times reading svmlight text against scikit-learn's loader on a file that looks like bags of words.

Run ``python benchmarks/parse.py``; it writes a file of at least 100 MB to a temporary directory, checks that
both readers give equal arrays, and prints the best of three interleaved runs as a Markdown table.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from bmrm.data.svmlight import read_svmlight

MEGABYTES = 100
REPEATS = 3
THREADS = 2
FEATURES = 47_000


def _chunk(rng: np.random.Generator, n_rows: int) -> str:
    """Rows of about 75 distinct words, in increasing order, with weights of a unit-length row."""
    # Gaps drawn from a long-tailed law give increasing indices without a sort or a search for duplicates.
    gaps = np.minimum(rng.pareto(0.6, size=(n_rows, 75)) * 20 + 1, 5000).astype(np.int64)
    indices = np.cumsum(gaps, axis=1)
    values = rng.lognormal(size=indices.shape)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    labels = rng.choice(np.array([-1, 1]), size=n_rows)
    lines = []
    for label, row, weights in zip(labels.tolist(), indices.tolist(), values.tolist()):
        words = [f"{i}:{v:.9g}" for i, v in zip(row, weights) if i <= FEATURES]
        lines.append(f"{label:+d} {' '.join(words)}\n")
    return "".join(lines)


def write_corpus(path: Path, megabytes: int = MEGABYTES) -> None:
    """Draw some megabytes of text once and repeat them: a parser does not profit from the repetition."""
    text = _chunk(np.random.default_rng(0), 12_000).encode()
    with path.open("wb") as file:
        written = 0
        while written < megabytes * 1_000_000:
            written += file.write(text)


def _bits(array: Any) -> Any:
    return np.ascontiguousarray(array).view(np.uint8)


def check_equal(ours: Any, theirs: tuple[Any, Any]) -> None:
    """Every array equal: values and labels bit for bit, indices as numbers (their widths may differ)."""
    matrix, labels = theirs
    assert ours.X.shape == matrix.shape
    assert np.array_equal(ours.X.indptr, matrix.indptr)
    assert np.array_equal(ours.X.indices, matrix.indices)
    assert np.array_equal(_bits(ours.X.data), _bits(matrix.data))
    assert np.array_equal(_bits(ours.y), _bits(labels))


def measure(path: Path) -> tuple[float, float]:
    """Best seconds of ours and of scikit-learn's, interleaved; the first pair is checked for equality."""
    ours, theirs = [], []
    for repeat in range(REPEATS):
        start = time.perf_counter()
        mine = read_svmlight(path, n_threads=THREADS)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        other = load_svmlight_file(str(path))
        theirs.append(time.perf_counter() - start)
        if repeat == 0:
            check_equal(mine, other)
    return min(ours), min(theirs)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.svm"
        write_corpus(path)
        size = path.stat().st_size / 1e6
        path.read_bytes()  # both start from a warm page cache
        ours, theirs = measure(path)
    print(f"Reading {size:.0f} MB of svmlight text, best of {REPEATS}, {THREADS} threads\n")
    print("| reader | seconds | MB/s | ratio |")
    print("| --- | ---: | ---: | ---: |")
    print(f"| scikit-learn | {theirs:.3f} | {size / theirs:.0f} | 1.0 |")
    print(f"| bmrm | {ours:.3f} | {size / ours:.0f} | {theirs / ours:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
