"""Regularized risk minimization with a certificate: min over w of J(w) = lam Omega(w) + R(w).

The way of the data, from top to bottom; each line is one call, nobody calls upward::

    file on disk      read(path)                   -> Dataset (X, y, groups, weight)
    raw y             loss.encode(y)               -> targets, checked
    X, y, loss        LinearRisk(X, y, loss)       scores f = X w, slopes l, subgradient X' l
    w                 risk.evaluate(w)             -> (value, subgradient): all that most solvers know
    (w, value, a)     bundle.add(w, value, a)      a plane below R: normal a, offset value - <a, w>
    bundle            master.solve(bundle)         -> next w, and a lower bound of min J
    Step              yielded by the solver        the driver decides when to stop
    Result            w and a Certificate          lower <= min J <= upper = J(w)
    estimator         fit, predict                 coef_, certificate_

A new model is a loss and its slope, not a new solver: any loss, regularizer, solver and place for the data
combine, because they meet only through values and subgradients of R.

Examples
--------
>>> import numpy as np, bmrm
>>> X, y = np.array([[2.0, 1.0], [-1.0, -2.0], [1.5, -0.5]]), np.array([1, -1, 1])
>>> model = bmrm.LinearClassifier(loss="hinge", lam=1e-2).fit(X, y)
>>> model.predict(X)
array([ 1, -1,  1])
>>> model.converged_
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bmrm import losses, regularizers, solvers
from bmrm._errors import ContradictionError, DataError, FloorError
from bmrm._warnings import ConstantModelWarning, MeaninglessObjectiveWarning, UselessModelWarning
from bmrm.certificate import Certificate, Status
from bmrm.checkpoint import Checkpoint
from bmrm.data import Dataset, Store, convert, read, read_sequences, write
from bmrm.driver import Record, Result, certify, path, solve
from bmrm.dropouts import solve_owners
from bmrm.owners import Owner, OwnersRisk, Privacy, ShardServer
from bmrm.problem import Problem
from bmrm.risks import LinearRisk, Risk, ShardedRisk, ShardedStructuredRisk, Shards, StructuredRisk
from bmrm.structured import (
    BatchedModel,
    ChainModel,
    FoldingModel,
    MatchingModel,
    PystructModel,
    SemiMarkovModel,
    Sequences,
    StructuredModel,
)

if TYPE_CHECKING:
    from bmrm import testing
    from bmrm.estimators import (
        HierarchicalClassifier,
        LinearClassifier,
        LinearRegressor,
        MultilabelClassifier,
        NoveltyDetector,
        OrdinalRegressor,
        Ranker,
        ScoreClassifier,
        SequenceLabeler,
        StructuredPredictor,
    )
    from bmrm.model import Model, load
    from bmrm.sequence_model import SequenceModel

__version__ = "0.1.0"

__all__ = [
    "BatchedModel",
    "Certificate",
    "ChainModel",
    "Checkpoint",
    "ConstantModelWarning",
    "ContradictionError",
    "DataError",
    "Dataset",
    "FloorError",
    "FoldingModel",
    "HierarchicalClassifier",
    "LinearClassifier",
    "LinearRegressor",
    "LinearRisk",
    "MatchingModel",
    "MeaninglessObjectiveWarning",
    "Model",
    "MultilabelClassifier",
    "NoveltyDetector",
    "OrdinalRegressor",
    "Owner",
    "OwnersRisk",
    "Privacy",
    "Problem",
    "PystructModel",
    "Ranker",
    "Record",
    "Result",
    "Risk",
    "ScoreClassifier",
    "SemiMarkovModel",
    "SequenceLabeler",
    "SequenceModel",
    "Sequences",
    "ShardServer",
    "ShardedRisk",
    "ShardedStructuredRisk",
    "Shards",
    "Status",
    "Store",
    "StructuredModel",
    "StructuredPredictor",
    "StructuredRisk",
    "UselessModelWarning",
    "certify",
    "convert",
    "load",
    "losses",
    "path",
    "read",
    "read_sequences",
    "regularizers",
    "solve",
    "solve_owners",
    "solvers",
    "testing",
    "write",
]

_LAZY = {
    "SequenceLabeler": "bmrm.estimators",
    "StructuredPredictor": "bmrm.estimators",
    "SequenceModel": "bmrm.sequence_model",
    "ScoreClassifier": "bmrm.estimators",
    "Ranker": "bmrm.estimators",
    "OrdinalRegressor": "bmrm.estimators",
    "MultilabelClassifier": "bmrm.estimators",
    "HierarchicalClassifier": "bmrm.estimators",
    "LinearClassifier": "bmrm.estimators",
    "LinearRegressor": "bmrm.estimators",
    "NoveltyDetector": "bmrm.estimators",
    "Model": "bmrm.model",
    "load": "bmrm.model",
}


def __getattr__(name: str) -> Any:
    """Import estimators, models and checks when they are first asked for: they need slower imports."""
    if name == "testing":
        return import_module("bmrm.testing")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'bmrm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
