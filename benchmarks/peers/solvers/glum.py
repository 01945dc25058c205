"""glum: generalized linear models by iteratively reweighted least squares."""

from benchmark_utils.adapter import Adapter, rungs

FAMILIES = {"logistic": "binomial", "least_squares": "normal", "poisson": "poisson"}


class Solver(Adapter):
    """Half the mean deviance + alpha (l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2): alpha is lam."""

    name = "glum"
    package = "glum"
    requirements = ["pip::glum"]
    does = {"logistic": ("l2", "l1"), "least_squares": ("l1",), "poisson": ("l2",)}
    ladder = rungs(1.0, 1e-9)
    most_columns = 10_000

    def fit(self, stop):
        """Fit with the tolerance of the gradient."""
        from glum import GeneralizedLinearRegressor

        model = GeneralizedLinearRegressor(
            alpha=self.lam,
            l1_ratio=1.0 if self.regularizer == "l1" else 0.0,
            family=FAMILIES[self.loss],
            fit_intercept=False,
            gradient_tol=stop,
            max_iter=100_000,
        )
        y = (self.y > 0.0).astype(float) if self.loss == "logistic" else self.y
        return model.fit(self.X, y).coef_
