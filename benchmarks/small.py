"""Small problems, and what comes before a solver: fits of 1000 x 20, and validation against a pass over the data.

"above" is the time of a fit outside `bmrm.solve`: checks, labels, and laying out the answer. Everything is measured
in turns, as minimum and median, for a busy machine spoils the median first.
"""

import time
import warnings
from functools import partial

import numpy as np
from passes import text
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import bmrm
from bmrm.estimators import minimizer

REPEATS = 100
VALIDATION_REPEATS = 10
ROWS, COLUMNS, LAM = 1000, 20, 1e-4
C = 1.0 / (LAM * ROWS)
SOLVE = minimizer.solve


class Reached(Exception):
    """Raised in place of the solver's first step."""


class Clock:
    """Takes the place of `solve` in the estimators, and measures it."""

    def __enter__(self):
        minimizer.solve = self
        self.seconds = 0.0
        return self

    def __exit__(self, *_):
        minimizer.solve = SOLVE

    def __call__(self, *args, **options):
        start = time.perf_counter()
        result = SOLVE(*args, **options)
        self.seconds = time.perf_counter() - start
        return result


def fits():
    """Yield a name, our fit, and those of others with the same objective (but for a penalized constant)."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=COLUMNS)
    y, t = np.sign(X @ w + 2.0 * rng.normal(size=ROWS)), X @ w + rng.normal(size=ROWS)

    def ours(model, loss, target, **options):
        return lambda: model(loss=loss, **{"lam": LAM} | options).fit(X, target)

    classes, numbers = bmrm.LinearClassifier, bmrm.LinearRegressor
    yield (
        "hinge",
        ours(classes, "hinge", y),
        {
            "LinearSVC": lambda: LinearSVC(loss="hinge", C=C).fit(X, y),
        },
    )
    yield (
        "squared_hinge",
        ours(classes, "squared_hinge", y),
        {
            "LinearSVC": lambda: LinearSVC(C=C / 2.0, dual=False).fit(X, y),
        },
    )
    yield (
        "logistic",
        ours(classes, "logistic", y),
        {
            "LogisticRegression": lambda: LogisticRegression(C=C).fit(X, y),
            "newton-cholesky": lambda: LogisticRegression(C=C, solver="newton-cholesky").fit(X, y),
        },
    )
    yield "logistic, l1", ours(classes, "logistic", y, regularizer="l1", lam=1e-2), {}
    yield (
        "least_squares",
        ours(numbers, "least_squares", t),
        {
            "Ridge": lambda: Ridge(alpha=LAM * ROWS).fit(X, t),
        },
    )
    yield (
        "least_squares, l1",
        ours(numbers, "least_squares", t, regularizer="l1", lam=1e-2),
        {
            "Lasso": lambda: Lasso(alpha=1e-2).fit(X, t),
        },
    )
    for loss in ("huber", "quantile", "least_absolute"):
        yield loss, ours(numbers, loss, t), {}
    yield "nu_novelty", lambda: bmrm.NoveltyDetector(features="linear", lam=1e-2).fit(X + 3.0), {}


def of(seconds):
    return f"{1e3 * min(seconds):.2f} / {1e3 * np.median(seconds):.2f}"


def elapsed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def print_fits():
    print(f"fits of {ROWS} x {COLUMNS} to 1e-3, ms, minimum / median of {REPEATS}\n")
    print("| loss | fit | above | solve | steps | passes | others |")
    print("|---|--:|--:|--:|--:|--:|---|")
    for name, fit, others in fits():
        model = fit()
        whole, above, inside, them = [], [], [], {other: [] for other in others}
        with Clock() as clock:
            for _ in range(REPEATS):
                whole.append(elapsed(fit))
                inside.append(clock.seconds)
                above.append(whole[-1] - clock.seconds)
                for other, call in others.items():
                    them[other].append(elapsed(call))
        rivals = ", ".join(f"{other} {of(seconds)}" for other, seconds in them.items())
        passes = model.history_[-1].passes
        print(f"| {name} | {of(whole)} | {of(above)} | {of(inside)} | {model.n_iter_} | {passes:g} | {rivals} |")


def data_sets(rng):
    yield "dense 1 000 000 x 20 f64", rng.normal(size=(1_000_000, 20))
    yield "dense 1 000 000 x 20 f32", rng.normal(size=(1_000_000, 20)).astype(np.float32)
    yield "dense 50 000 x 784 f64", rng.random((50_000, 784))
    yield "CSR text 40 000 x 47 000", text(rng, 40_000, 47_000, 88)
    yield "CSR short rows 400 000 x 54", text(rng, 400_000, 54, 12)


def before_solver(model, X, y):
    """Return how long a fit takes until the solver begins."""

    def reached(*_, **__):
        raise Reached

    minimizer.solve = reached
    start = time.perf_counter()
    try:
        model.fit(X, y)
    except Reached:
        return time.perf_counter() - start
    finally:
        minimizer.solve = SOLVE


def print_validation():
    print(f"\nuntil the solver begins, ms, against one evaluation of the risk; minimum of {VALIDATION_REPEATS}\n")
    print("| data | estimator | before | pass | share |")
    print("|---|---|--:|--:|--:|")
    rng = np.random.default_rng(0)
    for name, X in data_sets(rng):
        m, d = X.shape
        y, t, w = rng.integers(0, 2, size=m), rng.normal(size=m), rng.normal(size=d + 1)
        for model, target, loss in (
            (bmrm.LinearClassifier(), y, "hinge"),
            (bmrm.LinearRegressor(), t, "least_squares"),
            (bmrm.NoveltyDetector(features="linear"), None, "nu_novelty"),
        ):
            risk = bmrm.LinearRisk(X, target, loss, intercept=True)
            before, evaluation = [], []
            for _ in range(VALIDATION_REPEATS):
                before.append(before_solver(model, X, target))
                evaluation.append(elapsed(partial(risk.evaluate, w)))
            checks, one = 1e3 * min(before), 1e3 * min(evaluation)
            print(f"| {name} | {type(model).__name__} | {checks:.2f} | {one:.2f} | {checks / one:.2f} |")


def main():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that stop at their limit of iterations
        print_fits()
    print_validation()


if __name__ == "__main__":
    main()
