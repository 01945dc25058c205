"""Losses: raw targets come in, values and slopes of scores go out.

A loss is met twice, at the entrance (`encode`) and at the exit (`decide`); in between only its `evaluate` is
called. It must not know data matrices, weights of a model, regularizers, solvers or where the data lives.
"""

from __future__ import annotations

from typing import Any

from bmrm.losses.base import LOSSES, Loss
from bmrm.losses.binary import (
    Exponential,
    Hinge,
    HuberHinge,
    Logistic,
    Novelty,
    NuNovelty,
    Perceptron,
    SquaredHinge,
    SquaredPerceptron,
)
from bmrm.losses.gain_pairs import NdcgPairs
from bmrm.losses.hierarchy import HierarchicalHinge, HierarchicalSoftmax
from bmrm.losses.multiclass import MulticlassHinge, ScaledMulticlassHinge, Softmax
from bmrm.losses.multilabel import MultilabelHinge
from bmrm.losses.multivariate import MultivariateRegression
from bmrm.losses.nu import NuEpsilonInsensitive, NuHinge
from bmrm.losses.piecewise import PiecewiseQuadratic
from bmrm.losses.ranking import ExpectedRankUtility, Mrr, Ndcg, PairwiseRank
from bmrm.losses.regression import (
    EpsilonInsensitive,
    Huber,
    LeastAbsolute,
    LeastSquares,
    Poisson,
    Quantile,
    SquaredEpsilonInsensitive,
)
from bmrm.losses.scalar import ScalarLoss
from bmrm.losses.scores import BreakEven, FBeta, Ordinal, PrecisionAtK, RecallAtK, RocArea
from bmrm.losses.structured import STRUCTURED_LOSSES, StructuredHinge, StructuredLog, StructuredLoss
from bmrm.losses.tree import Tree
from bmrm.losses.vector import VectorLoss

__all__ = [
    "LOSSES",
    "STRUCTURED_LOSSES",
    "BreakEven",
    "EpsilonInsensitive",
    "ExpectedRankUtility",
    "Exponential",
    "FBeta",
    "HierarchicalHinge",
    "HierarchicalSoftmax",
    "Hinge",
    "Huber",
    "HuberHinge",
    "LeastAbsolute",
    "LeastSquares",
    "Logistic",
    "Loss",
    "Mrr",
    "MulticlassHinge",
    "MultilabelHinge",
    "MultivariateRegression",
    "Ndcg",
    "NdcgPairs",
    "Novelty",
    "NuEpsilonInsensitive",
    "NuHinge",
    "NuNovelty",
    "Ordinal",
    "PairwiseRank",
    "Perceptron",
    "PiecewiseQuadratic",
    "Poisson",
    "PrecisionAtK",
    "Quantile",
    "RecallAtK",
    "RocArea",
    "ScalarLoss",
    "ScaledMulticlassHinge",
    "Softmax",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "SquaredPerceptron",
    "StructuredHinge",
    "StructuredLog",
    "StructuredLoss",
    "Tree",
    "VectorLoss",
    "get",
]


def get(name: str | Loss, **parameters: Any) -> Loss:
    """Return the loss of that name; a loss passes through.

    Parameters
    ----------
    name : str or Loss
        A name of the registry ``LOSSES``.
    **parameters
        The loss's own parameters.

    Examples
    --------
    >>> import bmrm
    >>> bmrm.losses.get("quantile", tau=0.9)
    Quantile(tau=0.9)
    """
    if isinstance(name, Loss):
        return name
    if name in STRUCTURED_LOSSES:
        raise ValueError(
            f"loss '{name}' is for outputs of a structured model, not for rows of a matrix: use SequenceLabeler, "
            f"StructuredPredictor, or StructuredRisk with bmrm.losses.{STRUCTURED_LOSSES[name].__name__}(model)"
        )
    return LOSSES.make(name, parameters)
