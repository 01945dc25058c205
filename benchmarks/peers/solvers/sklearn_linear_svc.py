"""scikit-learn's LinearSVC."""

from benchmark_utils.adapter import Adapter, rungs


class Solver(Adapter):
    """C multiplies the sum; its squared hinge has no factor 1/2."""

    name = "LinearSVC"
    package = "sklearn"
    requirements = ["scikit-learn"]
    parameters = {"form": ["dual", "primal"]}
    does = {"hinge": ("l2",), "squared_hinge": ("l2",)}
    ladder = rungs(10.0, 1e-8)

    def takes(self, loss, regularizer):
        """The hinge has the dual form only."""
        return super().takes(loss, regularizer) and not (loss == "hinge" and self.form == "primal")

    def fit(self, stop):
        """Fit with the tolerance."""
        from sklearn.svm import LinearSVC

        C = self.C / 2.0 if self.loss == "squared_hinge" else self.C
        model = LinearSVC(
            loss=self.loss,
            dual=self.form == "dual",
            C=C,
            tol=stop,
            max_iter=10_000_000,
            fit_intercept=False,
            random_state=0,
        )
        return model.fit(self.X, self.y).coef_
