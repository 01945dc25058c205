"""J(w) = lam Omega(w) + 1/m sum_i l(<x_i, w>, y_i): the same for every solver."""

import numpy as np
import scipy.sparse as sp

from benchmark_utils.layout import BaseObjective
from benchmark_utils.losses import LOSSES, suits

LAMS = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]


class Objective(BaseObjective):
    """Regularized mean risk of a linear model without intercept."""

    name = "regularized risk"
    min_benchopt_version = "1.6"
    sampling_strategy = "tolerance"
    parameters = {"loss": list(LOSSES), "regularizer": ["l2", "l1"], "lam": LAMS}

    def skip(self, X, y, task):
        """Leave out losses that do not suit the targets."""
        fits = suits(self.loss, task)
        return not fits, None if fits else f"{self.loss} is not for {task}"

    def set_data(self, X, y, task):
        """Keep the data."""
        self.X, self.y, self.task = X, y, task
        self.ours = LOSSES[self.loss].ours()
        self.targets = self.ours.encode(y)
        self.weight = np.full(len(y), 1.0 / len(y))

    def get_objective(self):
        """What a solver is told."""
        return {"X": self.X, "y": self.y, "loss": self.loss, "regularizer": self.regularizer, "lam": self.lam}

    def evaluate_result(self, w):
        """The objective at w."""
        if not np.all(np.isfinite(w)):
            return {"value": float("inf")}
        # Without BLAS, whose threads would still be spinning in the next fit.
        scores = self.X @ w if sp.issparse(self.X) else np.einsum("ij,j->i", self.X, w)
        risk = self.ours.evaluate(scores, self.targets, self.weight)[0]
        size = 0.5 * float(np.square(w).sum()) if self.regularizer == "l2" else float(np.abs(w).sum())
        return {"value": risk + self.lam * size}

    def get_one_result(self):
        """Weights of the right length."""
        return {"w": np.zeros(self.X.shape[1])}
