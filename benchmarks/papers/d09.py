"""Do, Le, Foo: Proximal Regularization for Online and Batch Learning (2009), table 1 and figure 1."""

import numpy as np

import bmrm
from papers.page import Page, label, number, panels, style
from papers.runs import Curve, optimum, problem_of

SOLVERS = ("pegasos", "adaptive_online", "proximal_online")
PASSES = 100
TOLERANCE = 0.002
LIMIT = 10.0  # seconds for a run
# lam, best training loss and passes to 99 % of the way, as printed; the order is that of SOLVERS
PUBLISHED = {
    "adult": (1e-4, (0.3537, 0.3531, 0.3533), (28, 19, 18)),
    "ijcnn1": (1e-7, (0.3582, 0.2088, 0.1857), (89, 98, 3)),
    "covertype": (1e-8, (1.4852, 0.7217, 0.5830), (np.nan, 96, 12)),
}
FIGURE = "covertype"


def make(shelf):
    page = Page(
        "d09",
        "Online methods at small lam",
        "Do, Le and Foo, *Proximal Regularization for Online and Batch Learning* (2009), table 1 and figure 1: hinge "
        f"loss, l2, no constant; the best objective at the end of one of {PASSES} passes, of the point itself, not of "
        f"an average. A run that takes longer than {LIMIT:g} s is stopped, and its number of passes is given.",
    )
    page.data([shelf.get(name) for name in PUBLISHED])
    runs = {name: passes(shelf, name, lam) for name, (lam, _, _) in PUBLISHED.items()}
    table(page, shelf, runs)
    learning_curves(page, shelf, runs)
    return page


def passes(shelf, name, lam):
    """A run of each method, one record for each pass."""
    data = shelf.get(name)
    problem = problem_of(data.X, data.y, "hinge", lam=lam)
    limits = {"tol": 0.0, "max_iter": 3 if shelf.quick else PASSES, "max_seconds": shelf.seconds(LIMIT)}
    return {solver: Curve(bmrm.solve(problem, bmrm.solvers.get(solver, average=False), **limits)) for solver in SOLVERS}


def table(page, shelf, runs):
    """Table 1 for the sets at hand."""
    page.section("Table 1")
    rows, proximal = [], []
    for name, (lam, losses, counts) in PUBLISHED.items():
        data = shelf.get(name)
        certificate = optimum(problem_of(data.X, data.y, "hinge", lam=lam), shelf.seconds(LIMIT)).certificate
        best = {solver: run.upper[-1] for solver, run in runs[name].items()}
        proximal.append(best["proximal_online"] <= min(best.values()) + 1e-4)
        for solver, loss, count in zip(SOLVERS, losses, counts):
            run = runs[name][solver]
            near = run.iterations_to(1.0 - 0.99 * (1.0 - best[solver])) if best[solver] < 1.0 else np.inf
            cut = "" if run.result.iterations >= PASSES else f" ({run.result.iterations} passes)"
            rows.append(
                (name, f"{lam:g}", f"`{solver}`", f"{loss:.4f}", f"{best[solver]:.4f}{cut}", number(count),
                 number(near), f"{certificate.lower:.4f}")
            )  # fmt: skip
            if name == "adult":
                claim_adult(page, data, solver, loss, best[solver])
    page.table(
        ("data", "lam", "solver", "best loss, paper", "here", "passes to 99 %, paper", "here", "proven bound"), rows
    )
    page.text(
        "The sets combined, connect-4, rcv1, real-sim and w8a of the paper are not at hand, and for mnist it does not",
        "say which digit was told from the rest. No objective can be below a proven bound. A best loss of 1 is that of",
        "w = 0, from which every run starts; the paper leaves the start out.",
    )
    page.claim(
        "The proximal method has the best loss on 7 of 9 sets",
        f"on {sum(proximal)} of {len(proximal)} sets (ties within 1e-4 count)",
        sum(proximal) > len(proximal) / 2,
    )


def claim_adult(page, data, solver, published, ours):
    """The figures that must be met: a9a at lam 1e-4."""
    close = abs(ours - published) <= TOLERANCE if data.real else None
    verdict = {True: "yes", False: "no", None: "not the published data"}[close]
    print(f"  a9a, lam 1e-4, {solver}: paper {published:.4f}, here {ours:.4f}, within {TOLERANCE}: {verdict}")
    page.claim(
        f"a9a, lam 1e-4: best loss of `{solver}` {published:.4f}", f"{ours:.4f} (asked: within {TOLERANCE})", close
    )


def learning_curves(page, shelf, runs):
    """Figure 1: the objective over passes at three lam."""
    page.section("Figure 1: objective over passes")
    best = PUBLISHED[FIGURE][0]
    lams = shelf.few((100.0 * best, 10.0 * best, best))
    figure, axes = panels(len(lams))
    rows = []
    for axis, lam in zip(axes, lams):
        done = runs[FIGURE] if lam == best else passes(shelf, FIGURE, lam)
        for solver, run in done.items():
            axis.plot(run.iterations[1:], run.upper[1:], label=solver, **style(solver))
        rows.append((f"{lam:g}", *(f"{done[solver].upper[-1]:.4f}" for solver in SOLVERS)))
        label(axis, f"{FIGURE}, lam {lam:g}", "passes", "best objective so far", "log-linear")
    page.figure(figure, "figure1", "Best objective over passes on covertype at three lam")
    page.table(("lam", *(f"`{solver}`" for solver in SOLVERS)), rows)
    values = [float(cell) for cell in rows[-1][1:]]
    page.claim(
        "On covertype at the smallest lam the proximal method is ahead of both others",
        f"best objectives {', '.join(f'{value:.4f}' for value in values)} (Pegasos, adaptive, proximal)",
        values[2] < min(values[:2]),
    )
