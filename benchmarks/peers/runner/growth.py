"""How time and memory grow with the number of rows: generated rows, fixed lam, 1e-3."""

from statistics import median

import numpy as np

from runner.cells import Cell
from runner.memory import watched
from runner.peers import ours
from runner.worker import Worker

MINUTES = 1.5
ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS = 20
LAM = 1e-3
TARGET = 1e-3
PAIRS = (
    ("hinge", "l2"),
    ("logistic", "l2"),
    ("squared_hinge", "l2"),
    ("logistic", "l1"),
    ("quantile_0.5", "l2"),
    ("quantile_0.5", "l1"),
    ("least_squares", "l1"),
)


def rows(task, m):
    """The first m of the same rows."""
    rng = np.random.default_rng(3)
    w = rng.normal(size=COLUMNS)
    X = rng.normal(size=(m, COLUMNS))
    scores = X @ w / np.sqrt(COLUMNS)
    if task == "classification":
        return {"X": X, "y": np.where(scores + rng.normal(size=m) > 0.0, 1.0, -1.0), "task": task}
    return {"X": X, "y": scores + 0.5 * rng.standard_t(3.0, size=m), "task": task}


def run(store, quick=False):
    """One record for each loss and regularizer."""
    sizes = ROWS[:2] if quick else ROWS
    for task in ("classification", "regression"):
        pairs = [p for p in PAIRS if p[0].startswith(("quantile", "least")) == (task == "regression")]
        found = {pair: {"rows": sizes, "seconds": [], "bytes": [], "data_bytes": []} for pair in pairs}
        for m in sizes:
            data = rows(task, m)
            for pair, record in found.items():
                seconds, memory = times(data, *pair)
                record["seconds"].append(seconds)
                record["bytes"].append(memory)
                record["data_bytes"].append(data["X"].nbytes)
                print(f"growth {' '.join(pair)} {m} rows: {seconds:.4f} s", flush=True)
        for (loss, regularizer), record in found.items():
            store.add(f"growth/{loss}/{regularizer}", record)


def times(data, loss, regularizer):
    """Median time, and the memory of one fit in a new process."""
    cell = Cell("growth", "generated", loss, regularizer, LAM)
    plain, watching = Worker(ours(), data), Worker(watched(ours()), data)
    try:
        first = plain.fit(cell, TARGET, 120.0)["seconds"]
        samples = [plain.fit(cell, TARGET, 120.0)["seconds"] for _ in range(11 if first < 0.1 else 3)]
        memory = watching.fit(cell, TARGET, 120.0).get("bytes", 0)
    finally:
        plain.stop()
        watching.stop()
    return median(samples), memory
