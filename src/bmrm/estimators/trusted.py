"""The types that a stored estimator is made of, for skops, which makes no object of a type that is not named."""

from __future__ import annotations

from bmrm.certificate import Certificate
from bmrm.estimators.classification import LinearClassifier
from bmrm.estimators.hierarchical import HierarchicalClassifier
from bmrm.estimators.kernel_map import KernelMap
from bmrm.estimators.multilabel import MultilabelClassifier
from bmrm.estimators.novelty import NoveltyDetector
from bmrm.estimators.ordinal import OrdinalRegressor
from bmrm.estimators.ranking import Ranker
from bmrm.estimators.regression import LinearRegressor
from bmrm.estimators.score import ScoreClassifier
from bmrm.estimators.sequences import SequenceLabeler
from bmrm.estimators.structured import StructuredPredictor
from bmrm.losses import LOSSES, STRUCTURED_LOSSES, Tree
from bmrm.regularizers import REGULARIZERS
from bmrm.result import Record
from bmrm.solvers import SOLVERS
from bmrm.solvers.stochastic import Carried
from bmrm.structured import ChainModel, FoldingModel, MatchingModel, SemiMarkovModel
from bmrm.structured.attributes import Attributes
from bmrm.structured.chain_weights import ChainWeights

_ESTIMATORS = (
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
_RESULTS = (Certificate, KernelMap, Record, Carried, Tree)
_MODELS = (Attributes, ChainModel, ChainWeights, FoldingModel, MatchingModel, SemiMarkovModel)


def trusted_types() -> list[str]:
    """Return the names of this library's types that a fitted estimator may hold.

    Losses, regularizers, solvers and structured models of your own come on top.

    Examples
    --------
    >>> from bmrm.estimators.trusted import trusted_types
    >>> "bmrm.certificate.Certificate" in trusted_types()
    True

    With skops, ``skops.io.load("model.skops", trusted=trusted_types())`` reads what ``skops.io.dump(model,
    "model.skops")`` has written.
    """
    registered = [cls for registry in (LOSSES, STRUCTURED_LOSSES, REGULARIZERS, SOLVERS) for cls in registry.values()]
    known = [*_ESTIMATORS, *_RESULTS, *_MODELS, *(cls for cls in registered if cls.__module__.startswith("bmrm."))]
    return sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in known)
