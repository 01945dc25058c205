"""Memory of one fit in a new process, on top of the data: ours and QuantileRegressor's."""

import ctypes

from runner.cells import Cell
from runner.peers import ours, peers
from runner.worker import Worker

MINUTES = 0.5
KEY = "memory/quantile_0.5/l1"
ROWS = (5_000, 10_000, 20_000)
LAM = 1e-3
TARGET = 1e-6
SECONDS = 60.0
PEER = "QuantileRegressor highs-ipm"  # the default, simplex, is slower, and takes as much


def peak(reset=False):
    """The largest resident size in bytes, so far or from now on; 0 where the system does not tell."""
    try:
        if reset:
            give_back()
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        with open("/proc/self/status") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except OSError:
        return 0


def give_back():
    """Let go of pages that were used before and are free: a fit that takes them again would seem to need none."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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


def run(store, generate, sizes=ROWS):
    """One record: bytes for each number of rows, by label."""
    contestants = [ours(), *(peer for peer in peers(["QuantileRegressor"]) if peer.label == PEER)]
    found = {"sizes": list(sizes), "data_bytes": [], "memory": {adapter.label: [] for adapter in contestants}}
    for m in sizes:
        data = generate("regression", m)
        found["data_bytes"].append(data["X"].nbytes + data["y"].nbytes)
        for adapter in contestants:
            taken = of_one_fit(adapter, data)
            found["memory"][adapter.label].append(taken)
            print(f"memory {adapter.label} {m} rows: {taken / 1e6:.1f} MB", flush=True)
    store.add(KEY, found)


def of_one_fit(adapter, data):
    """Bytes on top of those of the new process; 0 if unknown, or if the fit does not end in time."""
    worker = Worker(watched(adapter), data)
    try:
        return worker.fit(Cell("memory", "generated", "quantile_0.5", "l1", LAM), TARGET, SECONDS).get("bytes", 0)
    finally:
        worker.stop()
        del adapter.fit
