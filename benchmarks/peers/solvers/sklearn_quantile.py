"""scikit-learn's QuantileRegressor: a linear program."""

from benchmark_utils.adapter import Adapter


class Solver(Adapter):
    """alpha is lam (half of it for |r|, which is twice the median's loss); no tolerance to choose."""

    name = "QuantileRegressor"
    package = "sklearn"
    requirements = ["scikit-learn"]
    sampling_strategy = "run_once"
    parameters = {"solver": ["highs", "highs-ipm"]}
    does = {"quantile_0.5": ("l1",), "quantile_0.9": ("l1",), "least_absolute": ("l1",)}
    ladder = (1e-7,)
    patience = 40.0  # to be able to say "30 times"
    pruned = False

    def fit(self, stop):
        """Solve the program."""
        from sklearn.linear_model import QuantileRegressor

        absolute = self.loss == "least_absolute"
        model = QuantileRegressor(
            quantile=self.kind.parameters.get("tau", 0.5),
            alpha=self.lam / 2.0 if absolute else self.lam,
            fit_intercept=False,
            solver=self.solver,
        )
        return model.fit(self.X, self.y).coef_
