"""Yu, Vishwanathan, Günter, Schraudolph: A Quasi-Newton Approach to Nonsmooth Problems (2010), figures 15 to 18."""

import numpy as np

from papers.page import Page, label, number, panels, style
from papers.runs import curve, fits, optimum, problem_of, until

LAMS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
NEAR = 1.02
LIMIT = 2.0
ROWS = 10000
HINGE = ("hinge", "l2", ("subgradient_lbfgs", "bmrm", "ls_bmrm"))
LOGISTIC = ("logistic", "l1", ("owlqn", "owlqn_star", "subgradient_lbfgs", "bmrm"))
SETS = {"covertype": (1e-6, 1e-5), "digits": (1e-6, 1e-4), "adult": (1e-5, 1e-4), "news": (1e-4, 1e-5)}


def make(shelf):
    page = Page(
        "y10",
        "Quasi-Newton methods for kinked objectives",
        "Yu, Vishwanathan, Günter and Schraudolph, *A Quasi-Newton Approach to Nonsmooth Convex Optimization Problems "
        "in Machine Learning* (2010), figures 15 to 18, with the paper's lam (its table 2; news stands for its "
        "astro-physics). "
        f"At most the first {ROWS:,} rows of each set. An optimum is the best objective of all runs and of a certified "
        f"run of `auto`; `ls_bmrm` is the paper's OCAS. No run is longer than {LIMIT:g} s.",
    )
    sets = [shelf.get(name) for name in SETS]
    page.data(sets)
    hinge = study(page, shelf, sets, HINGE, 0, (15, 16))
    claims_hinge(page, hinge)
    logistic = study(page, shelf, sets, LOGISTIC, 1, (17, 18))
    claims_logistic(page, logistic)
    return page


def study(page, shelf, sets, kind, which, figures):
    """Two figures for one loss and regularizer; returns the seconds to 2 % for each set, lam and solver."""
    loss, regularizer, solvers = kind
    times, largest = {}, 0.0
    over_time, axes_time = panels(len(sets))
    over_lam, axes_lam = panels(len(sets))
    for data, axis_time, axis_lam in zip(sets, axes_time, axes_lam):
        problem = problem_of(*data.head(ROWS), loss, regularizer)
        able = [solver for solver in solvers if fits(solver, problem)]
        objective_over_time(axis_time, shelf, data.name, problem.with_lam(SETS[data.name][which]), able)
        for lam in shelf.few(LAMS):
            gap = seconds_to_near(times, shelf, data.name, problem.with_lam(lam), able)
            largest = max(largest, gap)
        for solver in able:
            points = [(lam, s) for (name, lam), found in times.items() if name == data.name for s in [found[solver]]]
            axis_lam.plot(*zip(*points), marker=".", label=solver, **style(solver))
        label(axis_lam, data.name, "lam", "seconds to 2 %", "log-log")
    page.section(f"Figures {figures[0]} and {figures[1]}: {loss} loss, {regularizer}")
    title = f"{loss} loss, {regularizer}"
    page.figure(over_time, f"figure{figures[0]}", f"Excess objective over seconds, {title}")
    page.figure(over_lam, f"figure{figures[1]}", f"Seconds to within 2 % of the optimum over lam, {title}")
    rows = [
        (name, f"{lam:g}", *(number(found.get(s, np.nan)) for s in solvers)) for (name, lam), found in times.items()
    ]
    page.table(("seconds to 2 %", "lam", *(f"`{solver}`" for solver in solvers)), rows)
    page.text(
        f"The certified optima have relative gaps of at most {number(largest, 2)}; a dash means that 2 % was not",
        "reached in time, or that w = 0 is optimal.",
    )
    return times


def objective_over_time(axis, shelf, name, problem, solvers):
    """Figures 15 and 17: what is left above the optimum."""
    best = optimum(problem, shelf.seconds(3.0 * LIMIT)).certificate.upper
    runs = {solver: curve(problem, solver, shelf.seconds(LIMIT)) for solver in solvers}
    best = min([best, *(run.upper[-1] for run in runs.values())])
    for solver, run in runs.items():
        axis.plot(run.seconds[1:], np.maximum(run.upper[1:] / best - 1.0, 1e-7), label=solver, **style(solver))
    label(axis, f"{name}, lam {problem.lam:g}", "seconds", "objective / optimum - 1", "log-log")


def seconds_to_near(times, shelf, name, problem, solvers):
    """Figures 16 and 18: seconds to 2 % of the optimum; returns the relative gap of the certified run."""
    certificate = optimum(problem, shelf.seconds(LIMIT), tol=1e-4).certificate
    start = problem.objective(np.zeros(problem.risk.dim))
    if start <= certificate.upper * (1.0 + 1e-9):
        times[name, problem.lam] = dict.fromkeys(solvers, np.nan)
        return 0.0
    level = NEAR * certificate.upper
    times[name, problem.lam] = {
        solver: until(problem, solver, level, shelf.seconds(LIMIT)).seconds_to(level) for solver in solvers
    }
    return certificate.relative_gap


def duels(times, one, other):
    """Ratios of seconds, other to one, where either got there; one that did not counts as twice the limit."""
    pairs = [(found.get(one, np.nan), found.get(other, np.nan)) for found in times.values()]
    return [min(b, 2.0 * LIMIT) / min(a, 2.0 * LIMIT) for a, b in pairs if not np.isnan(a + b) and min(a, b) < np.inf]


def claims_hinge(page, times):
    plain = duels(times, "subgradient_lbfgs", "bmrm")
    wins = sum(ratio > 1.0 for ratio in plain)
    page.claim(
        "Hinge: subLBFGS reaches 2 % sooner than BMRM in most cases, by up to two orders of magnitude",
        f"sooner in {wins} of {len(plain)} cases, by up to {number(max(plain, default=np.nan))} times",
        wins > len(plain) / 2 if plain else None,
    )
    ocas = duels(times, "subgradient_lbfgs", "ls_bmrm")
    middle = float(np.median(ocas)) if ocas else np.nan
    page.claim(
        "Hinge: subLBFGS and OCAS perform alike",
        f"`ls_bmrm` takes {number(middle)} times the seconds of `subgradient_lbfgs` (median of {len(ocas)} cases)",
        1.0 / 3.0 <= middle <= 3.0 if ocas else None,
    )
    by_lam = {
        lam: [t for (_, other), found in times.items() if other == lam for t in found.values()] for _, lam in times
    }
    middles = [float(np.median(seconds)) for seconds in by_lam.values()]
    page.claim(
        "Hinge: all methods are faster for larger lam",
        f"median seconds from lam {max(by_lam):g} to {min(by_lam):g}: {', '.join(map(number, middles))}",
        middles[0] < middles[-1],
    )


def claims_logistic(page, times):
    pairs = duels(times, "owlqn", "owlqn_star")
    middle = float(np.median(pairs)) if pairs else np.nan
    page.claim(
        "Logistic, l1: OWL-QN and OWL-QN* converge alike, but for text, where OWL-QN* is slower",
        f"`owlqn_star` takes {number(middle)} times the seconds of `owlqn` (median of {len(pairs)} cases)",
        1.0 / 3.0 <= middle <= 3.0 if pairs else None,
    )
    text = duels({key: found for key, found in times.items() if key[0] == "news"}, "owlqn", "owlqn_star")
    page.claim(
        "Logistic, l1, text: OWL-QN* is slower than OWL-QN",
        f"{number(float(np.median(text)) if text else np.nan)} times the seconds (median of {len(text)} cases)",
        float(np.median(text)) > 1.0 if text else None,
    )
