"""Teo, Smola, Vishwanathan, Le: A Scalable Modular Convex Solver (2007), figures 3, 4, 5 and 7."""

import numpy as np

import bmrm
from papers import features
from papers.page import Page, label, number, panels, style
from papers.runs import curve, problem_of

LAMS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 3e-6)
SOLVERS = ("bmrm", "ls_bmrm", "auto")
CLASSIFICATION = ("adult", "news", "covertype")
REGRESSION = ("mv", "friedman", "planes", "pole")
CHUNK_LAM = 1e-5
TOL = 1e-3
LIMIT = 2.0
ROWS = 50000  # of covertype in figures 3 and 7


def make(shelf):
    page = Page(
        "t07",
        "A modular solver: time over lam, size and iterations",
        "Teo, Smola, Vishwanathan and Le, *A Scalable Modular Convex Solver for Regularized Risk Minimization* (2007), "
        f"figures 3, 4, 5 and 7. Times are those to a certified relative gap of {TOL:g}. The paper's rivals (SVMperf, "
        "SVMlight, LIBSVM) are other programs; here the plain bundle method meets the solvers that came after it.",
    )
    sets = [shelf.get(name) for name in CLASSIFICATION]
    page.data(sets + [shelf.get(name) for name in REGRESSION])
    runs = classification(page, shelf, sets)
    regression(page, shelf)
    chunks(page, shelf, sets)
    convergence(page, sets, runs)
    return page


def sweep(page, shelf, axes, problems):
    """Time of every solver over lam, drawn and tabulated; open circles were stopped by the limit."""
    rows, runs = [], {}
    lams = shelf.few(LAMS)
    for axis, (name, problem) in zip(axes, problems.items()):
        for solver in SOLVERS:
            done = [curve(problem.with_lam(lam), solver, shelf.seconds(LIMIT), tol=TOL) for lam in lams]
            seconds, converged = [run.result.seconds for run in done], [run.result.converged for run in done]
            axis.plot(lams, seconds, label=solver, **style(solver))
            stopped = [(lam, s) for lam, s, c in zip(lams, seconds, converged) if not c]
            axis.plot(*zip(*stopped), "o", color="black", fillstyle="none", markersize=5) if stopped else None
            cells = [f"{'' if c else '>'}{s:.2g}" for s, c in zip(seconds, converged)]
            rows.append((name, f"`{solver}`", *cells))
            runs[name, solver] = dict(zip(lams, done))
        label(axis, name, "lam", "seconds", "log-log")
    page.table(("data", "solver", *(f"{lam:g}" for lam in lams)), rows)
    return runs


def claim_sweep(page, paper, runs):
    """The paper's solver wins over its rivals; here: what the line search and the choice of solver bring."""
    pairs = []
    for (name, solver), done in runs.items():
        if solver != "bmrm":
            continue
        for lam, plain in done.items():
            rival = min(runs[name, other][lam].result.seconds for other in ("ls_bmrm", "auto"))
            pairs.append(plain.result.seconds / rival)
    slower = [max(done, key=lambda lam: done[lam].result.seconds) for (_, s), done in runs.items() if s == "bmrm"]
    page.claim(
        paper,
        f"`bmrm` takes {number(float(np.median(pairs)))} times (at most {number(max(pairs))} times) the seconds of the "
        f"better of `ls_bmrm` and `auto`; runs that met the limit of {LIMIT:g} s count with the limit",
        None,
    )
    page.claim(
        "Time grows as lam falls",
        f"`bmrm` is slowest at lam {', '.join(f'{lam:g}' for lam in slower)} (one for each set)",
        all(lam <= 1e-4 for lam in slower),
    )


def classification(page, shelf, sets):
    """Figure 3."""
    page.section("Figure 3: classification, seconds over lam")
    page.text(f"Hinge loss and l2; covertype with its first {ROWS:,} rows.")
    figure, axes = panels(len(sets))
    problems = {data.name: problem_of(*data.head(ROWS), "hinge") for data in sets}
    runs = sweep(page, shelf, axes, problems)
    page.figure(figure, "figure3", "Seconds over lam, hinge loss; open circles were stopped by the time limit")
    claim_sweep(page, "Classification: bmrm is up to 10 times faster than SVMperf (its rival of the time)", runs)
    return runs


def regression(page, shelf):
    """Figure 4: the epsilon-insensitive loss on features of a Gaussian kernel, as in the paper."""
    page.section("Figure 4: regression, seconds over lam")
    page.text(
        "Epsilon-insensitive loss (epsilon 0.1) and l2, on the columns of an incomplete Cholesky factor of a Gaussian",
        f"kernel with {features.RANK} pivots, as the paper does (with up to 1000), for the first {features.ROWS:,}",
        "rows; columns and target have mean 0 and deviation 1.",
    )
    problems = {}
    for name in REGRESSION:
        X, y = features.kernel_features(*shelf.get(name).head(features.ROWS))
        problems[name] = problem_of(X, y, bmrm.losses.EpsilonInsensitive(eps=0.1))
    figure, axes = panels(2, rows=2)
    runs = sweep(page, shelf, axes, problems)
    page.figure(figure, "figure4", "Seconds over lam, epsilon-insensitive loss; open circles were stopped by the limit")
    claim_sweep(page, "Regression: bmrm is much faster than SVMlight and LIBSVM (its rivals of the time)", runs)


def chunks(page, shelf, sets):
    """Figure 5: time over the size of a part of the data, at one lam."""
    page.section("Figure 5: seconds over the number of rows")
    figure, axes = panels(len(sets))
    rows, turns = [], []
    for axis, data in zip(axes, sets):
        sizes = shelf.few([s for s in (500, 2000, 8000, 32000, 128000) if s < data.X.shape[0]] or [60, 120])
        for solver in ("bmrm", "ls_bmrm"):
            done = [
                curve(problem_of(*data.head(n), "hinge", lam=CHUNK_LAM), solver, shelf.seconds(4.0), tol=TOL)
                for n in sizes
            ]
            axis.plot(sizes, [run.result.seconds for run in done], marker=".", label=solver, **style(solver))
            for n, run in zip(sizes, done):
                mark = "" if run.result.converged else ">"
                rows.append(
                    (
                        data.name,
                        f"`{solver}`",
                        f"{n:,}",
                        f"{mark}{run.result.seconds:.2g}",
                        f"{mark}{run.result.iterations}",
                    )
                )
            if solver == "bmrm":
                iterations = [run.result.iterations for run in done]
                turns.append(iterations[0] > iterations[-1])
        label(axis, f"{data.name}, lam {CHUNK_LAM:g}", "rows", "seconds", "log-log")
    page.figure(figure, "figure5", "Seconds over the number of rows at lam 1e-5")
    page.table(("data", "solver", "rows", "seconds", "iterations"), rows)
    page.claim(
        "At a fixed lam small parts of the data need more iterations than large ones: their risk is noisier",
        f"`bmrm` took more iterations on the smallest part than on the largest on {sum(turns)} of {len(turns)} sets",
        all(turns),
    )


def convergence(page, sets, runs):
    """Figure 7, from the runs of figure 3."""
    page.section("Figure 7: gap over iterations")
    figure, axes = panels(len(sets))
    rising = []
    for axis, data in zip(axes, sets):
        done = runs[data.name, "bmrm"]
        for lam, run in done.items():
            axis.plot(run.iterations[1:], np.maximum(run.gap[1:], 1e-16), label=f"lam {lam:g}", linewidth=1.2)
        label(axis, data.name, "iterations", "gap", "linear-log")
        counts = [run.result.iterations for run in done.values() if run.result.converged]
        rising.append(counts == sorted(counts))
    page.figure(figure, "figure7", "Gap of bmrm over iterations for several lam (the runs of figure 3)")
    page.claim(
        "The number of iterations rises as lam falls",
        f"it never falls with lam on {sum(rising)} of {len(rising)} sets (runs that converged)",
        all(rising),
    )
