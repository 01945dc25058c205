"""The product of everything registered: losses x regularizers x solvers x layouts and places of the data.

A new plug-in appears here by itself. Each triple is visited with one layout, which rotates; all layouts are
visited under the marker `slow`. Losses of several rows, which solvers know by values and subgradients only, are
visited by one solver for each regularizer, which rotates as well.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from reference import models, sets
from scipy import sparse

from bmrm import LinearRisk, Problem, Shards
from bmrm._traits import Trait
from bmrm.losses import LOSSES, Loss, VectorLoss
from bmrm.problem import missing
from bmrm.regularizers import REGULARIZERS, Regularizer
from bmrm.risks import linear_risk
from bmrm.solvers import SOLVERS, Solver
from bmrm.solvers.stochastic import Stochastic

ROWS, COLUMNS, LAM = 36, 4, 0.05


def as_csr(X: np.ndarray, index: type) -> sparse.csr_array:
    csr = sparse.csr_array(X)
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    return csr


LAYOUTS = {
    "dense64": lambda X: X,
    "dense32": lambda X: X.astype(np.float32),
    "csr32": lambda X: as_csr(X, np.int32),
    "csr64": lambda X: as_csr(X, np.int64),
}


PLACES = [*LAYOUTS, "shards"]


def shard_ends(m: int, groups: np.ndarray | None) -> tuple[np.ndarray, list[slice]]:
    """Return an order of the rows in which queries are together, and three uneven parts of it, the second of one."""
    order = np.arange(m) if groups is None else np.argsort(groups, kind="stable")
    starts = np.arange(m) if groups is None else np.flatnonzero(np.diff(groups[order], prepend=-1))
    cut = starts[len(starts) // 3], starts[len(starts) // 3 + 1]
    return order, [slice(0, cut[0]), slice(*cut), slice(cut[1], m)]


def parts_of(*columns: np.ndarray, cuts: tuple[int, ...] = (20, 55)) -> list[tuple[np.ndarray, ...]]:
    """Return the parts between the cuts, each a tuple of those of all columns."""
    return list(zip(*[np.split(column, cuts) for column in columns]))


def sharded(loss: Loss, X: np.ndarray, y: np.ndarray | None, groups: np.ndarray | None, engine=None, **options):
    """Return the risk of the same rows, in another order, on shards."""
    order, parts = shard_ends(X.shape[0], groups)
    X, y, groups = X[order], None if y is None else np.asarray(y)[order], None if groups is None else groups[order]
    shards = Shards.from_arrays([(X[part],) for part in parts], engine)
    options = {name: value[order] if isinstance(value, np.ndarray) else value for name, value in options.items()}
    return linear_risk(shards, y, loss, groups=groups, **options)


def all_losses() -> list[Loss]:
    return [loss for cls in LOSSES.values() for loss in cls.examples()]


def scalar_losses() -> list[Loss]:
    """Return the losses of one row and its one score."""
    return [loss for loss in all_losses() if loss.couples == "row" and not isinstance(loss, VectorLoss)]


def all_regularizers(dim: int) -> list[Regularizer]:
    return [regularizer for cls in REGULARIZERS.values() for regularizer in cls.examples(dim)]


def all_solvers() -> list[Solver]:
    """Return all solvers but those for noise, which only private owners have (test_private_owners.py)."""
    return [cls() for cls in SOLVERS.values() if Trait.NOISE not in cls.needs]


def regularizer_id(regularizer: Regularizer) -> str:
    marks = {Trait.FREE_COORDINATES: "+free", Trait.BOUNDS: "+bounds"}
    return regularizer.name + "".join(mark for trait, mark in marks.items() if trait in regularizer.traits)


def tolerance(solver: Solver) -> float:
    """The relative gap asked for: loose where the method is known to be slow.

    Stochastic methods come near the minimum like one over the number of epochs, with l1 like its square root.
    """
    return 1e-2 if solver.name == "bmrm_line" or isinstance(solver, Stochastic) else 1e-6


@cache
def sample_for(loss: Loss, m: int | None = None, d: int = COLUMNS) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return X, some of it 0, with entries that float32 holds exactly, targets and groups of the loss's own kind."""
    rng, m = np.random.default_rng(zlib.crc32(repr(loss).encode())), m or sets.rows_for(loss, ROWS)
    X = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.8)
    return X.astype(np.float32).astype(np.float64), *loss.draw(rng, m)


def data_for(loss: Loss, m: int | None = None, d: int = COLUMNS) -> tuple[np.ndarray, np.ndarray]:
    """Return X and targets, for a loss that takes no groups."""
    X, y, groups = sample_for(loss, m, d)
    assert groups is None
    return X, y


@cache
def risk_for(loss: Loss, layout: str = "dense64") -> LinearRisk:
    X, y, groups = sample_for(loss)
    if layout == "shards":
        return sharded(loss, X, y, groups, n_threads=1)
    return LinearRisk(LAYOUTS[layout](X), y, loss, groups=groups, n_threads=1)


@cache
def problem_for(loss: Loss, example: int, layout: str = "dense64") -> Problem:
    """Return the problem with that regularizer, given by its place among the examples."""
    risk = risk_for(loss, layout)
    return Problem(risk, all_regularizers(risk.dim)[example], LAM)


@dataclass(frozen=True)
class Case:
    """One combination that fits together."""

    loss: Loss
    example: int
    solver: Solver
    layout: str

    @property
    def problem(self) -> Problem:
        return problem_for(self.loss, self.example, self.layout)

    def __repr__(self) -> str:
        regularizer = problem_for(self.loss, self.example).regularizer
        return f"{self.loss}-{self.example}:{regularizer_id(regularizer)}-{self.solver.name}-{self.layout}"


def is_bounded_below(loss: Loss, regularizer: Regularizer) -> bool:
    """Whether the pair makes a problem at all; an adaptive margin has no bound along a column without a penalty."""
    if loss.name == "nu_hinge" and Trait.FREE_COORDINATES in regularizer.traits:
        return False
    # Without a penalty, a loss that compares scores is flat where all grow alike: its minima fill a line. In queries
    # of a few rows its minimum may be 0, which is reached far out, and of which no gap is a small fraction.
    if (isinstance(loss, VectorLoss) or loss.couples == "group") and regularizer.name == "zero":
        return False
    return Trait.UNBOUNDED_RISK not in loss.traits or Trait.STRONGLY_CONVEX in regularizer.traits


@cache
def reference_optimum(loss: Loss, example: int) -> float:
    X, y, groups = sample_for(loss)
    risk = risk_for(loss)
    if risk.design.intercept:
        X = np.column_stack([X, np.ones(ROWS)])
    bound = Problem(risk, all_regularizers(risk.dim)[example], LAM).regularizer
    return models.optimum(loss, X, risk.targets if loss.couples == "row" else y, bound, LAM, groups=groups)


def all_pairs() -> list[tuple[Loss, int]]:
    """Return losses with regularizers that make a problem."""
    return [
        (loss, example)
        for loss in all_losses()
        for example, regularizer in enumerate(all_regularizers(risk_for(loss).dim))
        if is_bounded_below(loss, regularizer)
    ]


def all_cases() -> list[pytest.param]:
    """Return each triple that fits, with all layouts; one of them, which rotates, is not slow.

    Losses of several scores or rows meet `auto` and the other solvers in turn: to a solver they are values and slopes.
    """
    cases = []
    for number, (loss, example) in enumerate(all_pairs()):
        fitting = [solver for solver in all_solvers() if not missing(solver, problem_for(loss, example))]
        single = loss.couples == "row" and not isinstance(loss, VectorLoss)
        for place, solver in enumerate(fitting):
            visited = single or place == number % len(fitting) or solver.name == "auto"
            places = [layout for layout in PLACES if not missing(solver, problem_for(loss, example, layout))]
            for k, layout in enumerate(places):
                case = Case(loss, example, solver, layout)
                chosen = visited and k == (number + place) % len(places)
                cases.append(pytest.param(case, id=repr(case), marks=() if chosen else pytest.mark.slow))
    return cases


def misfits(solver: Solver) -> list[Problem]:
    """Return the problems that the solver must refuse."""
    problems = [problem_for(*pair) for pair in all_pairs()]
    return [problem for problem in problems if missing(solver, problem)]
