"""scikit-learn's LinearSVR."""

from benchmark_utils.adapter import Adapter, rungs


class Solver(Adapter):
    """C multiplies the sum; with a tube of width 0 it is least absolute deviation, and half of it the median's loss."""

    name = "LinearSVR"
    package = "sklearn"
    requirements = ["scikit-learn"]
    does = {"epsilon_insensitive": ("l2",), "least_absolute": ("l2",), "quantile_0.5": ("l2",)}
    ladder = rungs(10.0, 1e-8)

    def fit(self, stop):
        """Fit with the tolerance."""
        from sklearn.svm import LinearSVR

        C = self.C / 2.0 if self.loss == "quantile_0.5" else self.C
        eps = self.kind.parameters.get("eps", 0.0)
        model = LinearSVR(
            epsilon=eps, C=C, tol=stop, max_iter=10_000_000, fit_intercept=False, dual=True, random_state=0
        )
        return model.fit(self.X, self.y).coef_
