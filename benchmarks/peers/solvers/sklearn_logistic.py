"""scikit-learn's LogisticRegression with each of its solvers."""

from benchmark_utils.adapter import Adapter, rungs

L1 = ("liblinear", "saga")


class Solver(Adapter):
    """C multiplies the sum of log(1 + exp(-y f))."""

    name = "LogisticRegression"
    package = "sklearn"
    requirements = ["scikit-learn"]
    parameters = {"solver": ["lbfgs", "newton-cholesky", "newton-cg", "liblinear", "liblinear dual", "sag", "saga"]}
    does = {"logistic": ("l2", "l1")}
    ladder = rungs(1.0, 1e-9)

    def takes(self, loss, regularizer):
        """Two of the solvers know l1."""
        return super().takes(loss, regularizer) and (regularizer == "l2" or self.solver in L1)

    @property
    def most_columns(self):
        """One solver forms the Hessian."""
        return 10_000 if self.solver == "newton-cholesky" else float("inf")

    def fit(self, stop):
        """Fit with the tolerance."""
        from sklearn.linear_model import LogisticRegression

        solver, _, dual = self.solver.partition(" ")
        model = LogisticRegression(
            C=self.C,
            l1_ratio=1.0 if self.regularizer == "l1" else 0.0,
            solver=solver,
            dual=bool(dual),
            tol=stop,
            max_iter=10_000_000,
            fit_intercept=False,
            random_state=0,
        )
        return model.fit(self.X, self.y).coef_
