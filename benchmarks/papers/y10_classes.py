"""Yu, Vishwanathan, Günter, Schraudolph: A Quasi-Newton Approach to Nonsmooth Problems (2010), figures 19 to 22."""

import numpy as np

from papers.page import Page, label, number, panels, style
from papers.runs import problem_of
from papers.y10 import NEAR, SURE, case, duels

LAMS = (1e-1, 1e-2, 1e-3, 1e-4)
LIMIT = 5.0
PASSES = 200
ROWS = 1000
SOLVERS = ("subgradient_lbfgs", "bmrm", "ls_bmrm")
CLASSES = {"letter": 1e-6, "usps": 1e-3, "dna": 1e-2, "ten digits": 1e-3, "newsgroups": 1e-2}
LABELS = {"scene": 1e-1, "reports": 1e-5, "mails": 1e-5}


def make(shelf):
    page = Page(
        "y10_classes",
        "Quasi-Newton methods for several classes and labels",
        "Yu, Vishwanathan, Günter and Schraudolph, *A Quasi-Newton Approach to Nonsmooth Convex Optimization Problems "
        "in Machine Learning* (2010), figures 19 to 22, with the paper's lam (its table 3). Where a set of the paper "
        "is not at hand another one of its kind takes its place: dna for protein, mails of Enron for RCV1; "
        f"there is none for INEX. The first {ROWS:,} rows of each set. Optima come from certified runs of `auto`, "
        "`ls_bmrm` is the paper's ls-BMRM. The smallest lam are left out, but for the paper's own. A run ends after "
        f"{PASSES} passes or {LIMIT:g} s. A pass is one product with X and one with its transpose: passes do not "
        "depend on the machine, seconds do, and claims are judged by passes.",
    )
    page.data([shelf.get(name) for name in (*CLASSES, *LABELS)])
    claims_classes(page, study(page, shelf, CLASSES, "multiclass_hinge", (19, 20)))
    claims_labels(page, study(page, shelf, LABELS, "multilabel_hinge", (21, 22)))
    return page


def study(page, shelf, sets, loss, figures):
    """Two figures for one loss; returns the passes to 2 % for each set, lam and solver."""
    seconds, passes, gaps = {}, {}, []
    courses, course_axes = panels(len(sets), rows=2)
    over_lam, lam_axes = panels(len(sets), rows=2)
    for column, (name, special) in enumerate(sets.items()):
        problem = problem_of(*shelf.get(name).head(ROWS), loss)
        lams = sorted({*shelf.few(LAMS), special}, reverse=True)
        for lam in lams:
            runs, best, gap = case(shelf, problem.with_lam(lam), SOLVERS, lam == special, LIMIT, PASSES)
            seconds[name, lam] = {solver: run.seconds_to(NEAR * best) for solver, run in runs.items()}
            passes[name, lam] = {solver: run.passes_to(NEAR * best) for solver, run in runs.items()}
            gaps.append(gap)
            if lam == special:
                draw_courses(course_axes[column :: len(sets)], f"{name}, lam {lam:g}", runs, best)
        for axis, found, unit in zip(lam_axes[column :: len(sets)], (seconds, passes), ("seconds", "passes")):
            draw_over_lam(axis, name, lams, found, unit)
    page.section(f"Figures {figures[0]} and {figures[1]}: {loss}, l2")
    page.figure(courses, f"figure{figures[0]}", f"Excess objective over seconds and over passes, {loss}")
    page.figure(over_lam, f"figure{figures[1]}", f"Seconds and passes to within 2 % of the optimum over lam, {loss}")
    head = ("to 2 %", "lam", *(f"`{s}` {unit}" for unit in ("s", "passes") for s in SOLVERS))
    rows = [
        (name, f"{lam:g}", *(number(found[name, lam].get(s)) for found in (seconds, passes) for s in SOLVERS))
        for name, lam in seconds
    ]
    page.table(head, rows)
    page.text(
        "A dash means that 2 % was not reached in time, or that w = 0 is as near.",
        f"In {sum(gap <= SURE for gap in gaps)} of {len(gaps)} cases the optimum is certified to a relative gap of",
        f"{SURE:g}; in the others the best objective of all runs stands for it.",
    )
    return passes


def draw_courses(axes, title, runs, best):
    """Figures 19 and 21: what is left above the optimum, over seconds and over passes."""
    for axis, unit in zip(axes, ("seconds", "passes")):
        for solver, run in runs.items():
            x, y = getattr(run, unit)[1:], np.maximum(run.upper[1:] / best - 1.0, 1e-5)
            axis.plot(x, y, label=solver, **style(solver))
        label(axis, title, unit, "objective / optimum - 1", "log-log")


def draw_over_lam(axis, name, lams, found, unit):
    """Figures 20 and 22."""
    for solver in SOLVERS:
        values = [found[name, lam].get(solver, np.nan) for lam in lams]
        axis.plot(lams, values, marker=".", label=solver, **style(solver))
    label(axis, name, "lam", f"{unit} to 2 %", "log-log")


def middle_of(values):
    """The median, or nothing."""
    return float(np.median(values)) if values else np.nan


def claims_classes(page, passes):
    plain = duels(passes, "subgradient_lbfgs", "bmrm", PASSES)
    wins = sum(ratio > 1.0 for ratio in plain)
    page.claim(
        "Multiclass: subLBFGS converges faster than BMRM across a wide range of lam",
        f"sooner at 2 % in {wins} of {len(plain)} cases; `bmrm` takes {number(middle_of(plain))} times its passes "
        "(median; a run that did not get there counts with its limit)",
        wins > len(plain) / 2 if plain else None,
    )
    cases = [found for found in passes.values() if found and min(found.values()) < np.inf]
    first = sum(found["bmrm"] < min(found["subgradient_lbfgs"], found["ls_bmrm"]) for found in cases)
    page.claim(
        "Multiclass: BMRM never outperforms both subLBFGS and ls-BMRM",
        f"it is the first at 2 % in {first} of {len(cases)} cases",
        first == 0 if cases else None,
    )
    lams = sorted({lam for _, lam in passes}, reverse=True)
    by_lam = [
        [min(p, PASSES) for (_, at), found in passes.items() if at == lam for p in found.values()] for lam in lams
    ]
    middles = [middle_of(values) for values in by_lam if values]
    page.claim(
        "Multiclass: all methods are faster for larger lam",
        f"median passes from lam {lams[0]:g} to {lams[-1]:g}: {', '.join(map(number, middles))}",
        middles[0] < middles[-1] if middles else None,
    )


def claims_labels(page, passes):
    cases = [found for found in passes.values() if found and min(found.values()) < np.inf]
    last = sum(found["subgradient_lbfgs"] > max(found["bmrm"], found["ls_bmrm"]) for found in cases)
    page.claim(
        "Multilabel: in many cases subLBFGS needs more time than its competitors",
        f"it is the last at 2 % in {last} of {len(cases)} cases",
        3 * last >= len(cases) if cases else None,
    )
    middle = middle_of(duels(passes, "ls_bmrm", "bmrm", PASSES))
    page.claim(
        "Multilabel: ls-BMRM is only marginally better than BMRM, for its line search is costly",
        f"`bmrm` takes {number(middle)} times the passes of `ls_bmrm` (median), which leave out what the line search "
        "costs",
        1.0 <= middle <= 2.0 if np.isfinite(middle) else None,
    )
