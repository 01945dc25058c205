"""How time and memory grow with the number of rows: generated rows, fixed lam, 1e-3."""

from statistics import median

import numpy as np

from runner.cells import Cell
from runner.peers import ours
from runner.worker import Worker

MINUTES = 2.5
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


def wanted(options):
    """A whole run has it, others where it is named."""
    narrowed = (options.data, options.loss, options.lam, options.regularizer, options.peers, options.family)
    return "growth" in (options.family or ()) or not (any(narrowed) or options.own or options.quick)


def rows(task, m):
    """The first m of the same rows."""
    rng = np.random.default_rng(3)
    w = rng.normal(size=COLUMNS)
    X = rng.normal(size=(m, COLUMNS))
    scores = X @ w / np.sqrt(COLUMNS)
    if task == "classification":
        return {"X": X, "y": np.where(scores + rng.normal(size=m) > 0.0, 1.0, -1.0), "task": task}
    return {"X": X, "y": scores + 0.5 * rng.standard_t(3.0, size=m), "task": task}


def peak(reset=False):
    """The largest resident size so far in bytes; 0 where the system does not tell."""
    try:
        if reset:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        with open("/proc/self/status") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except OSError:
        return 0


def watched(adapter):
    """The adapter, which then also tells how much memory a fit took on top."""
    fit = adapter.fit

    def fit_and_watch(stop):
        before = peak(reset=True)
        w = fit(stop)
        adapter.info["bytes"] = peak() - before
        return w

    adapter.fit = fit_and_watch
    return adapter


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
