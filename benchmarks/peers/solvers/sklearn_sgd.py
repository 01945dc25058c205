"""scikit-learn's SGDClassifier and SGDRegressor."""

from benchmark_utils.adapter import EPOCHS, Adapter

NAMES = {"logistic": "log_loss", "least_absolute": "epsilon_insensitive", "least_squares": "squared_error"}
LOSSES = "hinge squared_hinge logistic epsilon_insensitive least_absolute huber least_squares"


class Solver(Adapter):
    """alpha is lam (twice for its squared hinge, which lacks the factor 1/2); stopped after so many epochs."""

    name = "SGD"
    package = "sklearn"
    requirements = ["scikit-learn"]
    sampling_strategy = "iteration"
    does = dict.fromkeys(LOSSES.split(), ("l2", "l1"))
    ladder = EPOCHS
    reaches = None

    def fit(self, stop):
        """Fit so many epochs."""
        from sklearn.linear_model import SGDClassifier, SGDRegressor

        options = {
            "loss": NAMES.get(self.loss, self.loss),
            "penalty": self.regularizer,
            "alpha": 2.0 * self.lam if self.loss == "squared_hinge" else self.lam,
            "max_iter": int(stop),
            "tol": None,
            "fit_intercept": False,
            "random_state": 0,
        }
        if self.kind.task == "classification":
            return SGDClassifier(**options).fit(self.X, self.y).coef_
        width = self.kind.parameters.get("delta", self.kind.parameters.get("eps", 0.0))
        return SGDRegressor(epsilon=width, **options).fit(self.X, self.y).coef_
