"""Yu, Vishwanathan, Günter, Schraudolph: A Quasi-Newton Approach to Nonsmooth Problems (2010), figures 15 to 18."""

import numpy as np

from papers.page import Page, label, number, panels, style
from papers.runs import fits, optimum, problem_of, until

LAMS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
NEAR = 1.02
LIMIT = 1.5
ROWS = 5000
SURE = 1e-3
HINGE = ("hinge", "l2", ("subgradient_lbfgs", "bmrm", "ls_bmrm"))
LOGISTIC = ("logistic", "l1", ("owlqn", "owlqn_star", "subgradient_lbfgs", "bmrm"))
SETS = {"covertype": (1e-6, 1e-5), "digits": (1e-6, 1e-4), "adult": (1e-5, 1e-4), "news": (1e-4, 1e-5)}


def make(shelf):
    page = Page(
        "y10",
        "Quasi-Newton methods for kinked objectives",
        "Yu, Vishwanathan, Günter and Schraudolph, *A Quasi-Newton Approach to Nonsmooth Convex Optimization Problems "
        "in Machine Learning* (2010), figures 15 to 18, with the paper's lam (its table 2; news stands for its "
        f"astro-physics). At most the first {ROWS:,} rows of each set. Optima come from certified runs of `auto`; "
        f"`ls_bmrm` is the paper's OCAS. No run is longer than {LIMIT:g} s.",
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
    times, gaps = {}, []
    over_time, axes_time = panels(len(sets))
    over_lam, axes_lam = panels(len(sets))
    for data, axis_time, axis_lam in zip(sets, axes_time, axes_lam):
        problem, special = problem_of(*data.head(ROWS), loss, regularizer), SETS[data.name][which]
        able = [solver for solver in solvers if fits(solver, problem)]
        lams = sorted({*shelf.few(LAMS), special}, reverse=True)
        for lam in lams:
            runs, best, gap = case(shelf, problem.with_lam(lam), able, lam == special)
            times[data.name, lam] = {solver: run.seconds_to(NEAR * best) for solver, run in runs.items()}
            gaps.append(gap)
            if lam == special:
                excess(axis_time, f"{data.name}, lam {lam:g}", runs, best)
        for solver in able:
            seconds = [times[data.name, lam].get(solver, np.nan) for lam in lams]
            axis_lam.plot(lams, seconds, marker=".", label=solver, **style(solver))
        label(axis_lam, data.name, "lam", "seconds to 2 %", "log-log")
    title = f"{loss} loss, {regularizer}"
    page.section(f"Figures {figures[0]} and {figures[1]}: {title}")
    page.figure(over_time, f"figure{figures[0]}", f"Excess objective over seconds, {title}")
    page.figure(over_lam, f"figure{figures[1]}", f"Seconds to within 2 % of the optimum over lam, {title}")
    rows = [(name, f"{lam:g}", *(number(found.get(s)) for s in solvers)) for (name, lam), found in times.items()]
    page.table(("seconds to 2 %", "lam", *(f"`{solver}`" for solver in solvers)), rows)
    page.text(
        "A dash means that 2 % was not reached in time, or that w = 0 is as near.",
        f"In {sum(gap <= SURE for gap in gaps)} of {len(gaps)} cases the optimum is certified to a relative gap of",
        f"{SURE:g}; in the others the best objective of all runs stands for it.",
    )
    return times


def case(shelf, problem, solvers, whole, limit=LIMIT, passes=np.inf):
    """The run of each solver to 2 % of the optimum (or its whole run), the optimum, and its relative gap."""
    certificate = optimum(problem, shelf.seconds(2.0 * limit), tol=1e-4).certificate
    sure = certificate.relative_gap <= SURE
    level = NEAR * certificate.upper
    if sure and problem.objective(np.zeros(problem.risk.dim)) <= level:
        return {}, certificate.upper, certificate.relative_gap
    level = level if sure and not whole else -np.inf
    runs = {solver: until(problem, solver, level, shelf.seconds(limit), passes) for solver in solvers}
    best = min([certificate.upper, *(run.upper[-1] for run in runs.values())])
    return runs, best, certificate.relative_gap


def excess(axis, title, runs, best):
    """Figures 15 and 17: what is left above the optimum."""
    for solver, run in runs.items():
        axis.plot(run.seconds[1:], np.maximum(run.upper[1:] / best - 1.0, 1e-7), label=solver, **style(solver))
    label(axis, title, "seconds", "objective / optimum - 1", "log-log")


def duels(times, one, other, limit=LIMIT):
    """Ratios of seconds, other to one, where either got there; one that did not counts with the limit."""
    pairs = [(found[one], found[other]) for found in times.values() if one in found and other in found]
    return [min(b, limit) / min(a, limit) for a, b in pairs if min(a, b) < np.inf]


def claims_hinge(page, times):
    plain = duels(times, "subgradient_lbfgs", "bmrm")
    wins = sum(ratio > 1.0 for ratio in plain)
    page.claim(
        "Hinge: subLBFGS reaches 2 % sooner than BMRM in most cases, by up to two orders of magnitude",
        f"sooner in {wins} of {len(plain)} cases, by up to {number(max(plain, default=np.nan))} times or more (a run "
        "that did not get there counts with its limit)",
        wins > len(plain) / 2 if plain else None,
    )
    ocas = duels(times, "subgradient_lbfgs", "ls_bmrm")
    middle = float(np.median(ocas)) if ocas else np.nan
    page.claim(
        "Hinge: subLBFGS and OCAS perform alike",
        f"`ls_bmrm` takes {number(middle)} times the seconds of `subgradient_lbfgs` (median of {len(ocas)} cases)",
        1.0 / 3.0 <= middle <= 3.0 if ocas else None,
    )
    by_lam = {}
    for (_, lam), found in sorted(times.items(), key=lambda item: -item[0][1]):
        by_lam.setdefault(lam, []).extend(min(seconds, LIMIT) for seconds in found.values())
    middles = [float(np.median(seconds)) for seconds in by_lam.values() if seconds]
    page.claim(
        "Hinge: all methods are faster for larger lam",
        f"median seconds from lam {max(by_lam):g} to {min(by_lam):g}: {', '.join(map(number, middles))}",
        middles[0] < middles[-1] if middles else None,
    )


def claims_logistic(page, times):
    text = {key: found for key, found in times.items() if key[0] == "news"}
    pairs = duels({key: found for key, found in times.items() if key not in text}, "owlqn", "owlqn_star")
    middle = float(np.median(pairs)) if pairs else np.nan
    page.claim(
        "Logistic, l1: OWL-QN and OWL-QN* converge alike on all sets but one of text",
        f"`owlqn_star` takes {number(middle)} times the seconds of `owlqn` (median of {len(pairs)} cases)",
        1.0 / 3.0 <= middle <= 3.0 if pairs else None,
    )
    slower = duels(text, "owlqn", "owlqn_star")
    middle = float(np.median(slower)) if slower else np.nan
    page.claim(
        "Logistic, l1: on astro-physics (text) OWL-QN* is slower than OWL-QN",
        f"on news {number(middle)} times the seconds (median of {len(slower)} cases)",
        middle > 1.0 if slower else None,
    )
