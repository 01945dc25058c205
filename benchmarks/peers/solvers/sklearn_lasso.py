"""scikit-learn's Lasso."""

from benchmark_utils.adapter import Adapter, rungs


class Solver(Adapter):
    """1 / (2 m) |y - X w|^2 + alpha |w|_1: alpha is lam; the tolerance is a gap relative to |y|^2."""

    name = "Lasso"
    package = "sklearn"
    requirements = ["scikit-learn"]
    parameters = {"precompute": [False, True]}
    does = {"least_squares": ("l1",)}
    ladder = rungs(1.0, 1e-10)

    @property
    def label(self):
        """Name in tables."""
        return "Lasso gram" if self.precompute else "Lasso"

    @property
    def most_columns(self):
        """The Gram matrix must fit."""
        return 10_000 if self.precompute else float("inf")

    def fit(self, stop):
        """Fit with the tolerance."""
        from sklearn.linear_model import Lasso

        model = Lasso(alpha=self.lam, tol=stop, max_iter=10_000_000, fit_intercept=False, precompute=self.precompute)
        return model.fit(self.columns(), self.y).coef_
