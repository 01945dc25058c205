"""scikit-learn's PoissonRegressor."""

from benchmark_utils.adapter import Adapter, rungs


class Solver(Adapter):
    """Half the mean deviance + alpha / 2 |w|^2: alpha is lam."""

    name = "PoissonRegressor"
    package = "sklearn"
    requirements = ["scikit-learn"]
    parameters = {"solver": ["lbfgs", "newton-cholesky"]}
    does = {"poisson": ("l2",)}
    ladder = rungs(1.0, 1e-9)

    def fit(self, stop):
        """Fit with the tolerance."""
        from sklearn.linear_model import PoissonRegressor

        model = PoissonRegressor(alpha=self.lam, solver=self.solver, tol=stop, max_iter=1_000_000, fit_intercept=False)
        return model.fit(self.X, self.y).coef_
