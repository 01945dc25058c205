"""Estimators: arrays come in as scikit-learn's users have them, a fitted object with a certificate goes out.

Each class checks its input, decodes labels, chooses lam, calls the driver and lays the answer out as ``coef_``,
``intercept_`` and ``certificate_``. It must not know how a problem is solved: no solver, master problem or kernel
of a loss is treated as a special case here.
"""

from __future__ import annotations

from bmrm.estimators.classification import LinearClassifier
from bmrm.estimators.hierarchical import HierarchicalClassifier
from bmrm.estimators.multilabel import MultilabelClassifier
from bmrm.estimators.novelty import NoveltyDetector
from bmrm.estimators.ordinal import OrdinalRegressor
from bmrm.estimators.ranking import Ranker
from bmrm.estimators.regression import LinearRegressor
from bmrm.estimators.score import ScoreClassifier
from bmrm.estimators.sequences import SequenceLabeler
from bmrm.estimators.structured import StructuredPredictor

__all__ = [
    "HierarchicalClassifier",
    "LinearClassifier",
    "LinearRegressor",
    "MultilabelClassifier",
    "NoveltyDetector",
    "OrdinalRegressor",
    "Ranker",
    "ScoreClassifier",
    "SequenceLabeler",
    "StructuredPredictor",
]
