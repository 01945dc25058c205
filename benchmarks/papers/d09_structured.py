"""Do, Le, Foo: Proximal Regularization for Online and Batch Learning (2009), figure 3: structured outputs."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import structured_data

import bmrm
from papers.data import STAND_IN
from papers.page import Page, label, number, panels, style
from papers.runs import Curve

SOLVERS = {
    "bmrm": bmrm.solvers.BMRM(),
    "ls_bmrm": bmrm.solvers.LsBMRM(),
    "proximal_bundle": bmrm.solvers.ProximalBundle(),
    "proximal_bundle, no line search": bmrm.solvers.ProximalBundle(line_search=False),
}
HEAD = ("problem, lam", "at 0", "best", *(f"`{name}`" for name in SOLVERS))
SHARES = (0.9, 0.99)  # of the way from the objective at 0 to the best that any method found


@dataclass(frozen=True)
class Case:
    """A risk whose every evaluation is one call, the lam it is minimized at, and the calls that a run has."""

    name: str
    origin: str
    risk: Any
    lams: tuple[float, ...]
    calls: int


class Counted:
    """A risk of which only values and subgradients are seen: a trial of a line search is a call like any other."""

    def __init__(self, risk):
        self.dim, self.floor, self.evaluate = risk.dim, risk.floor, risk.evaluate


def make(shelf):
    page = Page(
        "d09_structured",
        "Structured outputs at small lam",
        "Do, Le and Foo, *Proximal Regularization for Online and Batch Learning* (2009), figure 3 (section 5.2): the "
        "best objective so far against calls of the oracle, which gives the risk and one subgradient for one w: one "
        "pass over the data. Every trial of a line search is a call. Nothing is remembered from one call to the next "
        "but planes. `proximal_bundle` without a line search is the method of the paper; with one, the default here, "
        "its terms are drawn together at the best point. Unlike on the other pages all threads are used: calls do not "
        "depend on them.",
    )
    cases = [folding(shelf), ranking(shelf), segments(shelf), matching(shelf)]
    page.text("Data:\n\n" + "\n".join(f"- {case.name}: {case.origin}; {case.risk.dim} weights" for case in cases))
    learning_curves(page, shelf, cases)
    little_noise(page, shelf)
    return page


def structured(made):
    model, X, Y = made
    return Counted(bmrm.StructuredRisk(X, Y, bmrm.losses.StructuredHinge(model), remember=0))


def folding(shelf):
    sizes = {"n": 4, "shortest": 20, "longest": 30} if shelf.quick else {}
    made = structured_data.rna(np.random.default_rng(1), **sizes)
    origin = f"{STAND_IN} for the 151 families: {len(made[1])} sequences of 50 to 150 bases, folded by planted weights"
    return Case("RNA folding", origin, structured(made), (1e-1, 1e-3, 1e-5), 4 if shelf.quick else 80)


def segments(shelf):
    made = structured_data.segmented(np.random.default_rng(2), n=5 if shelf.quick else 500)
    origin = f"generated, {len(made[1])} sequences of 20 to 60 tokens (not in the paper)"
    return Case("segments", origin, structured(made), (1e-1, 1e-3, 1e-5), 4 if shelf.quick else 80)


def matching(shelf):
    made = structured_data.matchings(np.random.default_rng(3), n=3 if shelf.quick else 100)
    origin = f"generated, {len(made[1])} pairs of graphs with 30 nodes (not in the paper)"
    return Case("matching", origin, structured(made), (1e-2, 1e-4, 1e-6), 4 if shelf.quick else 300)


def ranking(shelf):
    X, y, qid, origin = queries(shelf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some queries have no relevant document: they are left out
        risk = bmrm.LinearRisk(X, y, bmrm.losses.Ndcg(k=10, ties="together"), groups=qid)
    return Case("web ranking", origin, Counted(risk), (1e-2, 1e-4, 1e-6), 4 if shelf.quick else 300)


def queries(shelf):
    """MQ2008, all five parts, or queries with documents that a noisy linear rule grades."""
    if shelf.folder is not None and (shelf.folder / "MQ2008").is_dir():
        parts = [bmrm.read(shelf.folder / "MQ2008" / f"fold{k}_test.xz", n_features=46) for k in range(1, 6)]
        X = np.concatenate([np.asarray(part.X.todense()) for part in parts])
        y, qid = (np.concatenate([getattr(part, name) for part in parts]) for name in ("y", "groups"))
        return X, y, qid, f"MQ2008, {len(np.unique(qid))} queries, loss ndcg at 10"
    rng = np.random.default_rng(4)
    n, d = (5, 6) if shelf.quick else (500, 46)
    X = rng.random((20 * n, d))
    score = X @ rng.normal(size=d)
    y = np.digitize(score + 0.5 * score.std() * rng.normal(size=len(score)), np.quantile(score, [0.7, 0.9]))
    return X, y.astype(np.float64), np.repeat(np.arange(n), 20), f"{STAND_IN} for MQ2008, {n} queries, loss ndcg at 10"


def run(case, lam, name):
    """One run that ends with its calls."""
    problem = bmrm.Problem(case.risk, "l2", lam)
    enough = lambda record: record.passes >= case.calls  # noqa: E731
    return Curve(bmrm.solve(problem, SOLVERS[name], tol=1e-6, monitor=enough))


def compared(case, lam):
    """The runs of all methods, the objective at 0, the best one found, and the calls until each share of the way."""
    runs = {name: run(case, lam, name) for name in SOLVERS}
    start = case.risk.evaluate(np.zeros(case.risk.dim))[0]
    best = min(curve.upper[-1] for curve in runs.values())
    levels = [start - share * (start - best) for share in SHARES]
    return runs, start, best, {n: [curve.passes_to(level) for level in levels] for n, curve in runs.items()}


def cells(case, lam, start, best, reached):
    """A row of the table."""
    counts = [" / ".join(map(number, found)) for found in reached.values()]
    return f"{case.name}, {lam:g}", f"{start:.4g}", f"{best:.4g}", *counts


def learning_curves(page, shelf, cases):
    """Figure 3: the best objective over calls, a column for each problem and a row for each lam."""
    page.section("Figure 3: objective over calls")
    rows, calls = [], {}
    figure, axes = panels(len(cases), len(shelf.few(cases[0].lams)))
    for column, case in enumerate(cases):
        for row, lam in enumerate(shelf.few(case.lams)):
            runs, start, best, reached = compared(case, lam)
            axis = axes[row * len(cases) + column]
            for name, curve in runs.items():
                named = {"label": name} if axis is axes[0] else {}
                axis.plot(curve.passes[1:], curve.upper[1:], **named, **style(name))
            label(axis, f"{case.name}, lam {lam:g}", "calls", "best objective so far")
            calls[case.name, lam] = reached
            rows.append(cells(case, lam, start, best, reached))
            print("  " + " | ".join(rows[-1]), flush=True)
    page.figure(figure, "figure3", "Best objective over calls of the oracle; lam falls from top to bottom")
    page.text(
        f"Calls until {SHARES[0]:.0%} / {SHARES[1]:.0%} of the way from the objective at 0 to the best one found:"
    )
    page.table(HEAD, rows)
    claims(page, cases, calls)


def claims(page, cases, calls):
    """Fewer calls than the standard bundle method at the smallest lam; a dash is what was not reached."""
    for name in ("proximal_bundle, no line search", "proximal_bundle"):
        for case in cases:
            ours, theirs = (calls[case.name, case.lams[-1]][solver] for solver in (name, "bmrm"))
            words = ", ".join(
                f"{share:.0%}: {number(a)} calls, `bmrm` {number(b)}" for share, a, b in zip(SHARES, ours, theirs)
            )
            page.claim(
                f"{case.name}, lam {case.lams[-1]:g}: the proximal method (`{name}`) needs fewer calls "
                "than the standard one",
                words,
                ours[0] < theirs[0] and ours[1] <= theirs[1],
            )


def little_noise(page, shelf):
    """Foldings that weights explain almost entirely, where long steps do less harm."""
    page.section("With little noise")
    sizes = {"n": 4, "shortest": 20, "longest": 30} if shelf.quick else {"n": 40, "shortest": 50, "longest": 80}
    made = structured_data.rna(np.random.default_rng(1), noise=0.25, **sizes)
    case = Case("RNA folding", "", structured(made), (1e-3, 1e-5), 4 if shelf.quick else 120)
    rows = [cells(case, lam, *compared(case, lam)[1:]) for lam in case.lams]
    page.text(
        f"The same with {len(made[1])} shorter sequences and a third of the noise: weights of a large norm explain",
        "almost all of it. A method that trusts its planes far away then loses less:",
    )
    page.table(HEAD, rows)
