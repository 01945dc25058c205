"""Times the losses of several rows: how their cost grows from 1e4 to 1e6 rows, and the ROC area against a bare sort.

Run ``python benchmarks/oracles.py``. Times are the least of several runs in seconds of the processor, on one thread,
because other processes may share the machine. It ends with an error if a claim does not hold: slopes of at least 1.15
in log-log scale for `roc_area`, `ordinal` (5 grades) and `pairwise_rank` (queries of 100 documents), or a ROC area of
a million scores that takes 4 times as long as ``np.argsort`` of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from bmrm.losses import ExpectedRankUtility, FBeta, Loss, Mrr, Ndcg, Ordinal, PairwiseRank, PrecisionAtK, RocArea

ROWS = (10_000, 100_000, 1_000_000)
STEEPEST, LONGEST = 1.15, 4.0
DOCUMENTS = 100


def least_time(call: Callable[[], object]) -> float:
    """Return the least of the times of runs that last half a second together, three at least."""
    times: list[float] = []
    while len(times) < 3 or sum(times) < 0.5:
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return min(times)


def seconds(loss: Loss, scores: np.ndarray, y: np.ndarray, groups: np.ndarray | None) -> float:
    """Return what one evaluation takes."""
    targets, weight = loss.encode(y, groups), np.full(scores.size, 1.0 / scores.size)
    return least_time(lambda: loss.evaluate(scores, targets, weight))


def cases(rng: np.random.Generator, m: int) -> dict[str, tuple[Loss, np.ndarray, np.ndarray | None]]:
    """Return the losses by name, with targets for m rows."""
    signs = np.where(rng.random(m) < 0.3, 1.0, -1.0)
    grades = rng.integers(0, 5, size=m).astype(np.float64)
    queries = np.arange(m) // DOCUMENTS
    return {
        "roc_area": (RocArea(), signs, None),
        "ordinal": (Ordinal(), grades, None),
        "pairwise_rank": (PairwiseRank(), grades, queries),
        "ordinal, every grade another": (Ordinal(), rng.permutation(m).astype(np.float64), None),
        "pairwise_rank, one query": (PairwiseRank(), grades, np.zeros(m, np.int64)),
        "fbeta": (FBeta(), signs, None),
        "precision_at_k": (PrecisionAtK(k=0.1), signs, None),
        "ndcg": (Ndcg(), grades, queries),
        "mrr": (Mrr(), grades, queries),
        "expected_rank_utility": (ExpectedRankUtility(), grades, queries),
    }


def main() -> int:
    rng = np.random.default_rng(0)
    times: dict[str, list[float]] = {}
    for m in ROWS:
        scores = rng.normal(size=m)
        times.setdefault("np.argsort", []).append(least_time(lambda scores=scores: np.argsort(scores)))
        for name, (loss, y, groups) in cases(rng, m).items():
            times.setdefault(name, []).append(seconds(loss, scores, y, groups))
    print("| loss | " + " | ".join(f"{m:.0e} rows, ms" for m in ROWS) + " | log-log slope |")
    print("| --- |" + " ---: |" * (len(ROWS) + 1))
    slopes = {name: np.log10(t[-1] / t[0]) / np.log10(ROWS[-1] / ROWS[0]) for name, t in times.items()}
    for name, t in times.items():
        print(f"| {name} | " + " | ".join(f"{1e3 * each:.2f}" for each in t) + f" | {slopes[name]:.3f} |")
    ratio = times["roc_area"][-1] / times["np.argsort"][-1]
    print(f"\nroc_area of {ROWS[-1]:.0e} scores takes {ratio:.2f} times np.argsort of them (limit {LONGEST:g})")
    claimed = max(slopes[name] for name in ("roc_area", "ordinal", "pairwise_rank"))
    print(f"steepest of roc_area, ordinal and pairwise_rank: {claimed:.3f} (limit {STEEPEST:g})")
    return 0 if ratio < LONGEST and claimed < STEEPEST else 1


if __name__ == "__main__":
    sys.exit(main())
