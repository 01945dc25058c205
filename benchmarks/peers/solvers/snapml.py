"""snapml (IBM): coordinate descent, on several threads."""

from benchmark_utils.adapter import THREADS, Adapter, rungs


class Solver(Adapter):
    """The regularizer multiplies the penalty; the losses are summed, its squared hinge without the factor 1/2."""

    name = "snapml"
    package = "snapml"
    requirements = ["pip::snapml"]
    parameters = {"threads": [1, THREADS]}
    does = {
        "hinge": ("l2",),
        "squared_hinge": ("l2",),
        "logistic": ("l2", "l1"),
        "least_squares": ("l1",),
    }
    ladder = rungs(1.0, 1e-9)
    ends_early = {"hinge": 1e-4}  # whatever the tolerance

    def fit(self, stop):
        """Fit with the tolerance."""
        from snapml import LinearRegression, LogisticRegression, SupportVectorMachine

        common = {
            "regularizer": (2.0 if self.loss == "squared_hinge" else 1.0) * self.lam * self.m,
            "tol": stop,
            "max_iter": 1_000_000,
            "fit_intercept": False,
            "n_jobs": self.threads,
            "random_state": 0,
        }
        if self.loss in ("hinge", "squared_hinge"):
            return SupportVectorMachine(loss=self.loss, **common).fit(self.X, self.y).coef_
        model = LogisticRegression if self.loss == "logistic" else LinearRegression
        return model(penalty=self.regularizer, dual=self.regularizer == "l2", **common).fit(self.X, self.y).coef_
