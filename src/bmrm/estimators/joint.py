"""What the estimators of one joint problem share: several scores for each row, or scores that rows compete with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bmrm.estimators.base import LinearModel
from bmrm.estimators.minimizer import checked_weight
from bmrm.losses import Loss
from bmrm.risks.base import Array


class JointModel(LinearModel):
    """A linear model with one row of ``coef_`` for each score, all found by one problem."""

    coef_: Array
    intercept_: Array

    def _fit_jointly(
        self, X: Any, y: Any, target: Any, loss: Loss, sample_weight: Any, *, outputs: int = 1, groups: Any = None
    ) -> None:
        """Solve the problem and set the fitted attributes; target is what the loss encodes."""
        weight = checked_weight(sample_weight, len(y))
        sample = self._sample(X, y, loss, sample_weight, None, weight)
        self._outputs = outputs
        self._minimize(replace(sample, groups=groups, outputs=outputs), lambda _: target)

    def _coefficients(self, points: Array) -> dict[str, Any]:
        d = self.n_features_in_
        W = points.reshape(-1, self._outputs).T
        return {"coef_": W[:, :d].copy(), "intercept_": W[:, d].copy() if self.fit_intercept else np.zeros(len(W))}

    def _linear_parts(self) -> tuple[Array, Array]:
        return self.coef_, self.intercept_
