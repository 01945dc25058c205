"""What the linear estimators share: from parameters and arrays to a problem, and from scores to predictions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from bmrm import _sparse as sparse
from bmrm import losses
from bmrm.data import Design
from bmrm.data.elsewhere import Elsewhere
from bmrm.estimators.minimizer import RiskMinimizer, row_vector
from bmrm.estimators.stored import checked_store
from bmrm.losses import LOSSES, Loss
from bmrm.losses.scores import WholeSetLoss
from bmrm.problem import Problem
from bmrm.risks import Shards, linear_risk
from bmrm.risks.base import Array
from bmrm.risks.from_dask import is_dask


@dataclass(frozen=True)
class Sample:
    """Checked training data: X as the hooks of callbacks see it, and as the risks do."""

    X: Any
    y: Any
    design: Design
    loss: Loss
    weight: Array | None
    offset: Array | None
    lam: float
    metadata: dict[str, Any]
    groups: Any = None
    outputs: int = 1  # scores of each row

    @property
    def dim(self) -> int:
        """Length of w."""
        return self.design.dim * self.outputs


class LinearModel(RiskMinimizer):
    """A linear model fitted by minimizing lam Omega(w) + R(w); the parameters are documented in the subclasses."""

    _tasks: ClassVar[tuple[str, ...]]

    loss: str | Loss
    loss_params: dict[str, Any] | None
    fit_intercept: bool = False
    penalize_intercept: bool = False

    loss_: Loss

    @abstractmethod
    def _linear_parts(self) -> tuple[Array, Array]:
        """Return the coefficients (k, d) and the constants (k,) of the last fit."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _chosen_loss(self) -> Loss:
        """Return the loss; one of another kind raises an error with the names of those that fit."""
        if not isinstance(self.loss, (str, Loss)):
            raise ValueError(f"loss must be a name or a bmrm.losses.Loss, got {self.loss!r}")
        if isinstance(self.loss, Loss) and self.loss_params:
            raise ValueError(
                f"loss_params={self.loss_params!r} are for a loss given by its name; the loss {self.loss!r} has its own"
            )
        loss = losses.get(self.loss, **(self.loss_params or {}))
        if loss.task not in self._tasks:
            fitting = sorted(name for name, cls in LOSSES.items() if cls.task in self._tasks and not _of_a_score(cls))
            raise ValueError(
                f"loss '{loss.name or type(loss).__name__}' is for {loss.task}; "
                f"{type(self).__name__} takes losses for {' or '.join(self._tasks)}: {', '.join(fitting)}"
                + _how_to_say_it(loss, self._tasks[0])
            )
        if _of_a_score(type(loss)):
            raise ValueError(
                f"loss '{loss.name or type(loss).__name__}' looks at all rows together, which "
                f"{type(self).__name__} does not: use ScoreClassifier"
            )
        return loss

    def _checked_data(self, X: Any, **options: Any) -> Any:
        """Return X (and y, if it is among the options) as scikit-learn wants it; the Design checks finiteness."""
        if is_dask(X):
            X = Shards.from_dask(X)
        if isinstance(X, Elsewhere):
            return checked_store(self, X, **options)
        if sparse.issparse(X) and X.format != "csr":  # the Design checks those
            X = sparse.rows_of(X)
        return validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            **options,
        )

    def _sample(self, X: Any, y: Any, loss: Loss, sample_weight: Any, offset: Any, weight: Array | None) -> Sample:
        """Gather what a problem is made of; weight is what the rows count in the end."""
        if self.penalize_intercept and not self.fit_intercept:
            raise ValueError("penalize_intercept=True needs fit_intercept=True: there is no intercept to penalize")
        design = Design(X, self.fit_intercept or loss.learns_offset, self.n_threads)
        lam = self._chosen_lam(design.n_rows if weight is None else float(weight.sum()))
        metadata = {"sample_weight": sample_weight, "offset": offset}
        shift = None if offset is None else row_vector(offset, design.n_rows, "offset")
        return Sample(X, y, design, loss, weight, shift, lam, metadata)

    def _problem(self, sample: Sample, target: Array | None) -> Problem:
        risk = linear_risk(sample.design, target, sample.loss, sample.weight, sample.groups, offset=sample.offset)
        if self.penalize_intercept:
            risk.unpenalized = ()
        return Problem(risk, self._chosen_regularizer(), sample.lam)

    def _starts(self, sample: Sample, n_problems: int) -> Array | None:
        """Return the points where the last fit ended, if they have the right shape."""
        if not hasattr(self, "coef_"):
            return None
        coef, constants = self._linear_parts()
        design = sample.design
        if coef.shape != (n_problems * sample.outputs, design.n_cols):
            return None
        points = np.column_stack([coef, constants]) if design.intercept else coef
        if sample.outputs > 1:  # one problem, whose w is a matrix with a row for each feature
            points = points.T.reshape(1, -1)
        return np.ascontiguousarray(points, dtype=np.float64)

    def _scores(self, X: Any, offset: npt.ArrayLike | None) -> Array:
        """Return the scores (m, k) of new rows."""
        check_is_fitted(self)
        coef, constants = self._linear_parts()
        design = Design(self._checked_data(X, reset=False), n_threads=self.n_threads)
        scores = design.widened(len(coef)).dot(np.ascontiguousarray(coef.T).reshape(-1)).reshape(-1, len(coef))
        scores += constants
        return scores if offset is None else scores + row_vector(offset, design.n_rows, "offset")[:, None]


def _how_to_say_it(loss: Loss, task: str) -> str:
    """Return how a loss of one's own says what it is for, if it does not."""
    said = any("task" in vars(cls) for cls in type(loss).__mro__ if cls is not Loss)
    if said or type(loss).__module__.startswith("bmrm."):
        return ""
    return f". A loss of your own is for regression unless it says otherwise: write task = '{task}' in its class"


def _of_a_score(cls: type[Loss]) -> bool:
    """Whether the loss stands for a score of two classes, which `ScoreClassifier` is for."""
    return issubclass(cls, WholeSetLoss) and cls.task == "classification"
