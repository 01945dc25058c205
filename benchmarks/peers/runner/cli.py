"""The command: which cells, in which order, for how long."""

import argparse
import time
import warnings
from pathlib import Path

from benchmark_utils.files import BUILD, ROOT
from runner import check, claims, growth, memory, report
from runner.cells import FAMILIES, SETS, load, select
from runner.measure import OWN, TARGETS, Field, NoBound
from runner.peers import missing, ours, peers, preload
from runner.store import Optima, Store
from runner.worker import Worker

OTHERS = ("growth", "memory")  # not of cells


def parse(arguments):
    """The options."""
    parser = argparse.ArgumentParser(description="Time to a given accuracy, against other packages.")
    parser.add_argument("--family", nargs="+", choices=[*FAMILIES, *OTHERS], help="these families only")
    parser.add_argument("--data", nargs="+", choices=list(SETS), metavar="SET", help="these data sets only")
    parser.add_argument("--loss", nargs="+", metavar="LOSS", help="these losses only")
    parser.add_argument("--regularizer", choices=("l2", "l1"))
    parser.add_argument("--lam", nargs="+", type=float, help="these values only")
    parser.add_argument("--peers", nargs="+", metavar="NAME", help="these packages or classes only")
    parser.add_argument("--quick", action="store_true", help="one value of lam, small sets")
    parser.add_argument("--all", action="store_true", help="all regression sets")
    parser.add_argument("--own", action="store_true", help="auto against our own methods, no peers")
    parser.add_argument("--check", action="store_true", help="that every peer minimizes our objective")
    parser.add_argument("--redraw", action="store_true", help="write the pages from the results at hand")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--budget", type=float, default=58.0, help="minutes for the whole run (58)")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of results")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks", help="folder of the pages")
    return parser.parse_args(arguments)


def partial(options):
    """Whether this is a look at some cells: they are measured anew, and the committed pages are left alone."""
    filters = (options.family, options.data, options.loss, options.regularizer, options.lam, options.peers)
    return any(filters) or options.quick or options.own


def wanted(options, other):
    """Whether to measure what is not of cells: in a whole run, and where it is named."""
    return other in (options.family or ()) or not partial(options)


def run(arguments=None):
    """Measure, print the claims, write the pages."""
    options = parse(arguments)
    warnings.simplefilter("ignore")
    if options.check:
        return check.main(options.peers)
    name = "scratch.jsonl" if partial(options) and not options.redraw else "results.jsonl"
    path = options.build / name
    if options.fresh or name == "scratch.jsonl":
        path.unlink(missing_ok=True)
    store = Store(path)
    for package in missing():
        print(f"(not installed, left out: {package})", flush=True)
    left = [] if options.redraw else Run(options, store).all()
    for line in claims.lines(store):
        print(line)
    if left:
        print(f"{len(left)} cells left out, most for lack of time; the same command tries them: {', '.join(left)}")
    if not partial(options) or options.redraw:
        report.write(store, options.output, len(select(parse([]))))
    return 0


class Run:
    """Goes through the cells of one data set after the other."""

    def __init__(self, options, store):
        self.options, self.store = options, store
        self.began, self.counted = time.monotonic(), 0.0
        self.optima = Optima(options.build / "optima.json")
        self.compiled = set()
        self.absent = set()

    def minutes(self):
        """Since the start."""
        return (time.monotonic() - self.began) / 60.0

    def count_minutes(self):
        """Add what the store does not know yet: a run that breaks off leaves results, which took their time."""
        minutes = self.minutes()
        self.store.add_minutes(minutes - self.counted)
        self.counted = minutes

    def all(self):
        """Measure everything that was asked for and is not there yet; return what there was no time for."""
        cells = [cell for cell in select(self.options) if cell.key not in self.store.records]
        left, allowed = [], 0.0
        others = growth.MINUTES + memory.MINUTES
        scale = self.options.budget / (sum(family.minutes for family in FAMILIES.values()) + others)
        for family in dict.fromkeys(cell.family for cell in cells):
            allowed += scale * FAMILIES[family].minutes
            mine = [cell for cell in cells if cell.family == family]
            for which in dict.fromkeys(cell.data for cell in mine):
                left += self.one_set(which, [cell for cell in mine if cell.data == which], allowed)
        if wanted(self.options, "growth"):
            growth.run(self.store, quick=self.options.quick)
        if wanted(self.options, "memory"):
            memory.run(self.store, growth.rows)
        self.count_minutes()
        return left

    def one_set(self, which, cells, allowed):
        """All cells of a data set, with processes that share it."""
        data = load(which)
        if data is None:
            if which not in self.absent:
                print(f"({which} is not present: left out)", flush=True)
            self.absent.add(which)
            return []
        workers = self.workers(data, cells)
        field, left = Field(*workers), []
        try:
            for cell in cells:
                if self.minutes() > allowed and not partial(self.options):
                    left.append(cell.key)
                    continue
                try:
                    record = field.measure(cell, self.optima)
                except NoBound as error:
                    print(f"({error})", flush=True)
                    left.append(cell.key)
                    continue
                self.store.add(cell.key, {"cell": vars(cell), "shape": data["X"].shape, **record})
                print(f"[{self.minutes():5.1f} min] {summary(cell, record)}", flush=True)
        finally:
            for worker in [workers[0], *workers[1], *workers[2].values()]:
                worker.stop()
            self.count_minutes()
        return left

    def workers(self, data, cells):
        """Ours, the peers', and our other methods'."""
        chosen = [] if self.options.own else peers(self.options.peers)
        pairs = dict.fromkeys((cell.loss, cell.regularizer) for cell in cells)
        for adapter in chosen:
            preload(adapter.package)
            for loss, regularizer in pairs:
                if adapter.compiles and adapter.takes(loss, regularizer):
                    self.compile(adapter, data, loss, regularizer)
        rivals = {name: Worker(ours(name), data) for name in OWN}
        return Worker(ours(), data), [Worker(adapter, data) for adapter in chosen], rivals

    def compile(self, adapter, data, loss, regularizer):
        """Let compilers run here, once: the processes inherit the code."""
        key = (adapter.package, loss, regularizer, type(data["X"]))
        if key not in self.compiled:
            self.compiled.add(key)
            adapter.set_objective(data["X"], data["y"], loss, regularizer, 0.01)
            adapter.warm_up()


def summary(cell, record):
    """One line on a cell."""
    parts = []
    for target in TARGETS:
        mine = record["ours"][target]["seconds"]
        name, best = claims.fastest(record["peers"], target)
        own, rival = claims.fastest(record["own"], target)
        times = f"{target:g}: auto {claims.ms(mine)}"
        times += f", {name} {claims.ms(best)}" if name else ", no peer" if record["peers"] else ""
        times += f", own {own} {claims.ms(rival)}" if own else ""
        parts.append(times)
    return f"{cell.key:45s} " + " | ".join(parts)
