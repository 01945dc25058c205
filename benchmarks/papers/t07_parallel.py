"""Teo, Smola, Vishwanathan, Le: A Scalable Modular Convex Solver (2007), figure 6: many machines, simulated."""

import statistics
import time
import warnings
from dataclasses import dataclass
from multiprocessing import Process
from multiprocessing.connection import Client, Listener

import numpy as np

import bmrm
from bmrm.parallel.base import shared_out
from bmrm.risks import linear_risk
from papers.d09_structured import queries
from papers.data import STAND_IN
from papers.page import Page, label, number, panels

LAMS = (1e-2, 1e-3, 1e-4)
NODES = (1, 2, 4, 8, 16, 32, 40, 48, 56, 64, 128, 256, 512, 1000)
SHARDS = 8
STEPS = 40
QUADRATIC = 0.01  # ndcg takes 0.29 + 0.0029 n microseconds for each of a query's n documents
MANY = 64  # messages at once
TIMES = 100  # the data of the simulated cluster are so many times those measured


@dataclass(frozen=True)
class Case:
    """Rows for a loss; work says what each query costs, and `whole` whether the loss needs all scores in one place."""

    name: str
    loss: object
    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    work: np.ndarray | None
    whole: bool = False


@dataclass(frozen=True)
class Link:
    """What a message costs: alpha seconds on its way, o where it is sent or received, and one for every beta bytes."""

    alpha: float
    o: float
    beta: float

    def star(self, nodes, size):
        """One node sends to all others, one after the other, and then hears from them: the ways overlap."""
        return 2.0 * (self.alpha * (nodes > 1) + (nodes - 1) * (self.o + size / self.beta))

    def tree(self, nodes, size):
        """Every node that has the message passes it on, and sums come back the same way."""
        return 2.0 * np.ceil(np.log2(nodes)) * (self.alpha + self.o + size / self.beta)


@dataclass(frozen=True)
class Run:
    """Seconds for a step here and on the shards, round trips, and bytes to and from one worker in each of them."""

    here: float
    shards: float
    trips: float
    size: float

    def seconds(self, nodes, share, link, gathered=0.0):
        """A step on so many nodes, the largest of which has that share of the work; bytes of scores may come too."""
        return self.here + TIMES * self.shards * share + self.trips * link(nodes, self.size) + gathered


def make(shelf):
    page = Page(
        "t07_parallel",
        "Many machines, simulated",
        "Teo, Smola, Vishwanathan and Le, *A Scalable Modular Convex Solver for Regularized Risk Minimization* (2007), "
        "figure 6 (section 5.6): seconds for a step of the bundle method against the number of machines. There are "
        "two cores here, so the figure is computed, by T(n) = s + t share(n) + 2 trips (alpha + (n - 1) (o + bytes / "
        "beta)): s, the seconds of the master problem, t, those of values and gradients on one core, round trips and "
        f"bytes are measured on {SHARDS} shards in one process; alpha, o and beta (the way of a message, the work of "
        "sending or receiving it, bytes in a second) on messages between two processes of "
        f"this machine. t is multiplied by {TIMES}, as if there were so many times the data; share(n) is the part of "
        "the work that the busiest machine has. The engines here speak to one worker after the other (a star); a tree "
        "would pass messages on, and is drawn for comparison: it is not built.",
    )
    link = measured_link(4 if shelf.quick else 200)
    cases = [classification(shelf), ranking(shelf), ordinal(shelf)]
    page.text("Data:\n\n" + "\n".join(f"- {case.name}: {STAND_IN if case.groups is None else ''} {len(case.X):,} rows, "
                                      f"{case.X.shape[1]} columns" for case in cases))  # fmt: skip
    page.text(
        f"alpha = {1e6 * link.alpha:.0f} and o = {1e6 * link.o:.1f} microseconds, beta = {link.beta / 1e9:.2g} GB/s."
    )
    runs = {(case.name, lam): observed(case, lam, shelf) for case in cases for lam in shelf.few(LAMS)}
    measured(page, runs)
    draw(page, shelf, cases, runs, link)
    return page


def classification(shelf):
    rng = np.random.default_rng(1)
    m, d = (200, 5) if shelf.quick else (200_000, 50)
    X = rng.normal(size=(m, d))
    y = np.sign(X @ rng.normal(size=d) + 2.0 * rng.normal(size=m))
    return Case("classification", bmrm.losses.Hinge(), X, y, None, None)


def ranking(shelf):
    X, y, groups, _ = queries(shelf)
    order = np.argsort(groups, kind="stable")
    sizes = np.tile(np.unique(groups, return_counts=True)[1], 2 if shelf.quick else TIMES)
    loss = bmrm.losses.Ndcg(k=10, ties="together")
    return Case("ranking", loss, X[order], y[order], groups[order], sizes + QUADRATIC * sizes**2)


def ordinal(shelf):
    case = classification(shelf)
    y = np.digitize(case.X @ np.ones(case.X.shape[1]), [-3.0, 0.0, 3.0]).astype(float)
    return Case("ordinal regression", bmrm.losses.Ordinal(), case.X, y, None, None, whole=True)


def observed(case, lam, shelf):
    """Run the bundle method on shards in this process, and see where the time goes."""
    m = len(case.X)
    cuts = np.linspace(0, m, SHARDS + 1).astype(int)[1:-1]
    if case.groups is not None:
        starts = np.flatnonzero(np.diff(case.groups, prepend=-1))
        cuts = np.unique(starts[np.searchsorted(starts, cuts).clip(max=len(starts) - 1)])
    shards = bmrm.Shards.from_arrays([(part,) for part in np.split(case.X, cuts) if len(part)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some queries have no relevant document: they are left out
        risk = linear_risk(shards, case.y, case.loss, groups=case.groups, n_threads=1)
    placed = shards.placed
    placed.calls = placed.sent = placed.received = 0
    placed.seconds = [0.0] * placed.n_shards
    result = bmrm.solve(bmrm.Problem(risk, "l2", lam), "bmrm", tol=1e-9, max_iter=3 if shelf.quick else STEPS)
    steps, busy = result.iterations, sum(placed.seconds)
    size = 8.0 * risk.dim
    return Run((result.seconds - busy) / steps, busy / steps, placed.calls / steps, size)


def measured(page, runs):
    page.section("Measured")
    rows = [
        (f"{name}, {lam:g}", number(1e3 * run.here), number(1e3 * run.shards), number(run.trips), number(run.size))
        for (name, lam), run in runs.items()
    ]
    page.table(("problem, lam", "s (ms)", "t (ms)", "round trips", "bytes each way"), rows)


def share(work, nodes, by_work):
    """The part of the work that the busiest machine has: shards by work, or by numbers of rows or queries."""
    if work is None:
        return 1.0 / nodes
    owner = np.array(shared_out(work.tolist(), nodes)) if by_work else np.arange(len(work)) * nodes // len(work)
    return np.bincount(owner, work, nodes).max() / work.sum()


def draw(page, shelf, cases, runs, link):
    page.section("Figure 6")
    figure, axes = panels(len(cases))
    rows = []
    for axis, case in zip(axes, cases):
        shares = {kind: np.array([share(case.work, n, kind) for n in NODES]) for kind in (True, False)}
        # Scores come to one place and slopes go back, all of them, and the loss is computed there.
        gathered = TIMES * 2 * 8.0 * len(case.X) / link.beta if case.whole else 0.0
        gathered += (TIMES - 1) * runs[case.name, LAMS[-1]].here if case.whole else 0.0
        for lam in shelf.few(LAMS):
            run = runs[case.name, lam]
            times = [run.seconds(n, part, link.star, gathered) for n, part in zip(NODES, shares[True])]
            axis.plot(NODES, times, marker=".", label=f"lam {lam:g}")
        run = runs[case.name, LAMS[-1]]
        times = {
            "star": [run.seconds(n, part, link.star, gathered) for n, part in zip(NODES, shares[True])],
            "tree": [run.seconds(n, part, link.tree, gathered) for n, part in zip(NODES, shares[True])],
            "equal numbers": [run.seconds(n, part, link.star, gathered) for n, part in zip(NODES, shares[False])],
        }
        axis.plot(NODES, times["tree"], "k:", label="tree")
        if case.groups is not None:
            axis.plot(NODES, times["equal numbers"], "k--", label="equal numbers of queries")
        label(axis, case.name, "machines", "seconds for a step", "log-log")
        for n in (64, 1000):
            at = NODES.index(n)
            idle = [1.0 - 1.0 / (n * shares[kind][at]) for kind in (True, False)]
            faster = times["star"][0] / times["star"][at], times["tree"][0] / times["tree"][at]
            rows.append((f"{case.name}, {n}", number(times["star"][at]), *(f"{x:.1f}" for x in faster),
                         *(f"{100 * x:.0f}%" for x in idle)))  # fmt: skip
        claims(page, case, run, times)
    page.figure(figure, "figure6", "Seconds for a step against the number of machines, computed")
    head = (
        "problem, machines",
        "seconds (star)",
        "faster (star)",
        "faster (tree)",
        "idle, by work",
        "idle, by numbers",
    )
    page.table(head, rows)


def claims(page, case, run, times):
    at = NODES.index(64)
    if case.name == "classification":
        plain = run.here + TIMES * run.shards / 64
        ratio = times["star"][at] / plain
        page.claim("classification: T(n) = s + t/n up to 64 machines", f"{ratio:.2f} times that at 64", ratio < 1.5)
    if case.groups is not None:
        few = case.work[: len(np.unique(case.groups))]
        idle = [1.0 - 1.0 / (64 * share(few, 64, by_work)) for by_work in (False, True)]
        page.claim(
            "ranking: machines with large queries let the others wait",
            f"{len(few)} queries on 64 machines: idle {100 * idle[0]:.0f}% with equal numbers of them, "
            f"{100 * idle[1]:.0f}% with shards by work",
            idle[0] > 0.1,
        )


def measured_link(repeats):
    """Time messages between two processes: one at a time, many at once, large ones."""
    with Listener(family="AF_UNIX") as listener:
        other = Process(target=_echo, args=(listener.address, (2 + MANY) * repeats), daemon=True)
        other.start()
        with listener.accept() as line:
            small, large, many = (
                statistics.median(_ping(line, size, times) for _ in range(repeats)) / 2.0
                for size, times in ((8, 1), (8_000_000, 1), (8, MANY))
            )
        other.join()
    o = many / MANY
    return Link(max(small - o, 0.0), o, 8_000_000 / max(large - small, 1e-9))


def _ping(line, size, times):
    message = bytes(size)
    began = time.perf_counter()
    for _ in range(times):
        line.send_bytes(message)
    for _ in range(times):
        line.recv_bytes()
    return time.perf_counter() - began


def _echo(address, times):
    with Client(address) as line:
        for _ in range(times):
            line.send_bytes(line.recv_bytes())
