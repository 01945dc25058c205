"""Menon: Large-Scale Support Vector Machines (2009), the training time that falls as examples are added."""

import time

import numpy as np

import bmrm
from papers.page import Page, label, number, panels, style
from papers.runs import error, optimum, problem_of, walk

LAMS = (1e-3, 1e-4, 1e-5, 1e-6)
SETS = ("covertype", "news")
ABOVE = 0.01  # the error asked for, above the best one known
PASSES = 30


def make(shelf):
    page = Page(
        "m09",
        "More examples, less training time",
        "Menon, *Large-Scale Support Vector Machines: Algorithms and Theory* (2009), after Shalev-Shwartz and Srebro "
        "(2008): the time that Pegasos needs for a given test error falls as the training set grows, while that of a "
        "cutting-plane method (SVMperf, here `bmrm`) falls and then rises again.",
    )
    sets = [shelf.get(name) for name in SETS]
    page.data(sets)
    page.text(
        f"The test error asked for lies {ABOVE:.0%} above the best of the certified optima of the whole training set",
        f"for lam in {', '.join(f'{lam:g}' for lam in LAMS)}; each size has the lam that suits it best. Less than a",
        "pass of Pegasos over n rows in random order is a pass over the first of them, and is measured as one. Seconds",
        "include the certificate, but not the measuring of the test error.",
    )
    figure, axes = panels(len(sets), rows=2)
    rows = []
    for column, data in enumerate(sets):
        rows += study(page, shelf, data, axes[column], axes[len(sets) + column])
    page.figure(figure, "time", "Rows visited by Pegasos (top) and seconds (bottom) to a fixed test error")
    page.table(("data", "training rows", "rows visited, `pegasos`", "seconds, `pegasos`", "seconds, `bmrm`"), rows)
    return page


def study(page, shelf, data, top, bottom):
    """Time to the target for growing training sets."""
    lams, m = shelf.few(LAMS), data.X.shape[0]
    sizes = [int(m / 2.0**k) for k in range(10, -1, -1) if m / 2.0**k >= min(500, m / 2)]
    target = ABOVE + min(best_error(shelf, data, lam) for lam in lams)
    parts = {(n, lam): one_pass(data, n, lam) for n in sizes for lam in lams}
    pegasos = [fewest_rows(shelf, data, n, lams, target, parts) for n in sizes]
    bundle = [min(bundle_seconds(shelf, data, n, lam, target) for lam in lams) for n in sizes]
    top.plot(sizes, [visited for visited, _ in pegasos], marker=".", label="pegasos", **style("pegasos"))
    bottom.plot(sizes, [seconds for _, seconds in pegasos], marker=".", label="pegasos", **style("pegasos"))
    bottom.plot(sizes, bundle, marker=".", label="bmrm", **style("bmrm"))
    label(top, f"{data.name}, test error {target:.1%}", "training rows", "rows visited", "log-log")
    label(bottom, f"{data.name}, test error {target:.1%}", "training rows", "seconds", "log-log")
    claim(page, data.name, sizes, [visited for visited, _ in pegasos], bundle)
    return [
        (data.name, f"{n:,}", number(visited, 6), number(seconds), number(other))
        for n, (visited, seconds), other in zip(sizes, pegasos, bundle)
    ]


def best_error(shelf, data, lam):
    """Test error of the optimum on all rows."""
    return error(optimum(problem_of(data.X, data.y, "hinge", lam=lam), shelf.seconds(4.0)).w, data.X_test, data.y_test)


def one_pass(data, n, lam):
    """Seconds and test error of one pass over the first n rows."""
    began = time.perf_counter()
    result = bmrm.solve(problem_of(*data.head(n), "hinge", lam=lam), "pegasos", tol=0.0, max_iter=1)
    return time.perf_counter() - began, error(result.w, data.X_test, data.y_test)


def fewest_rows(shelf, data, n, lams, target, parts):
    """Fewest rows that a run with n examples has to visit for the target, and its seconds."""
    found = [(rows, seconds) for (rows, _), (seconds, wrong) in parts.items() if rows <= n and wrong <= target]
    for lam in lams if not found else ():
        problem = problem_of(*data.head(n), "hinge", lam=lam)
        for passes, (seconds, w) in enumerate(walk(problem, "pegasos", shelf.seconds(1.5)), start=1):
            if error(w, data.X_test, data.y_test) <= target:
                found.append((passes * n, seconds))
            if passes >= PASSES or found:
                break
    return min(found, default=(np.inf, np.inf))


def bundle_seconds(shelf, data, n, lam, target):
    """Seconds of the bundle method to the target; infinite if it does not get there."""
    for seconds, w in walk(problem_of(*data.head(n), "hinge", lam=lam), "bmrm", shelf.seconds(1.5)):
        if error(w, data.X_test, data.y_test) <= target:
            return seconds
    return np.inf


def claim(page, name, sizes, visited, bundle):
    """Compare the smallest size that gets there with the largest."""
    able = [k for k in range(len(sizes)) if np.isfinite(visited[k])]
    first, last = (visited[able[0]], visited[able[-1]]) if able else (np.nan, np.nan)
    page.claim(
        f"{name}: Pegasos needs less work for the same test error the more examples there are",
        f"{number(first, 6)} rows visited with the smallest set that suffices ({sizes[able[0]] if able else 0:,} rows),"
        f" {number(last, 6)} with all {sizes[-1]:,}",
        first > last if len(able) > 1 else None,
    )
    reached = [k for k in range(len(sizes)) if np.isfinite(bundle[k])]
    lowest = min(reached, key=lambda k: bundle[k], default=None)
    page.claim(
        f"{name}: a cutting-plane method has a turning point, after which more examples cost time",
        "the target was not reached"
        if lowest is None
        else f"fastest with {sizes[lowest]:,} rows ({number(bundle[lowest])} s); with all {number(bundle[-1])} s",
        None if lowest is None else lowest < len(sizes) - 1,
    )
