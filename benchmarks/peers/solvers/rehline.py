"""rehline: coordinate descent on the dual of piecewise linear-quadratic losses with l2.

Its elastic net needs a part of l2, so that l1 alone cannot be stated.
"""

from benchmark_utils.adapter import Adapter, rungs

NAMES = {
    "hinge": "hinge",
    "squared_hinge": "squared hinge",
    "quantile_0.5": "QR",
    "quantile_0.9": "QR",
    "epsilon_insensitive": "SVR",
    "least_absolute": "MAE",
    "huber": "huber",
}
KEYS = {"tau": "qt", "eps": "epsilon", "delta": "tau"}


class Solver(Adapter):
    """C multiplies the sum; its squared hinge has no factor 1/2."""

    name = "rehline"
    package = "rehline"
    requirements = ["pip::rehline"]
    does = dict.fromkeys(NAMES, ("l2",))
    ladder = rungs(10.0, 1e-9)

    def fit(self, stop):
        """Fit with the tolerance."""
        from rehline import plqERM_Ridge

        loss = {"name": NAMES[self.loss]} | {KEYS[key]: value for key, value in self.kind.parameters.items()}
        C = self.C / 2.0 if self.loss == "squared_hinge" else self.C
        return plqERM_Ridge(loss=loss, C=C, tol=stop, max_iter=10_000_000).fit(self.X, self.y).coef_
