"""celer: working sets and extrapolated duals for l1."""

from benchmark_utils.adapter import Adapter, rungs


class Solver(Adapter):
    """Lasso: 1 / (2 m) |y - X w|^2 + alpha |w|_1; logistic: |w|_1 + C sum. The tolerance is a duality gap."""

    name = "celer"
    package = "celer"
    requirements = ["pip::celer"]
    does = {"least_squares": ("l1",), "logistic": ("l1",)}
    ladder = rungs(1.0, 1e-9)

    def fit(self, stop):
        """Fit with the tolerance."""
        from celer import Lasso, LogisticRegression

        common = {"tol": stop, "max_iter": 1_000_000, "fit_intercept": False}
        if self.loss == "logistic":
            return LogisticRegression(C=self.C, **common).fit(self.columns(), self.y).coef_
        return Lasso(alpha=self.lam, **common).fit(self.columns(), self.y).coef_
