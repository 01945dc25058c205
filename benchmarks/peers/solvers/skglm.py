"""skglm: data fits, penalties and solvers are put together."""

import numpy as np
import scipy.sparse as sp

from benchmark_utils.adapter import Adapter, rungs

QUANTILES = {"least_absolute": 0.5, "quantile_0.5": 0.5, "quantile_0.9": 0.9}


class Solver(Adapter):
    """Means of losses + alpha times the penalty; sums for the pinball loss."""

    name = "skglm"
    package = "skglm"
    requirements = ["pip::skglm"]
    does = {
        "hinge": ("l2",),
        "logistic": ("l2", "l1"),
        "least_squares": ("l1",),
        "huber": ("l1",),
        "least_absolute": ("l1",),
        "quantile_0.5": ("l1",),
        "quantile_0.9": ("l1",),
    }
    ladder = rungs(1.0, 1e-9)
    compiles = True

    def fit(self, stop):
        """Solve with the tolerance."""
        if self.loss == "hinge":
            return self.dual_svm(stop)
        solver, datafit, penalty = self.parts(stop)
        w = solver.solve(self.columns(), self.y, datafit, penalty)[0]
        return w[: self.X.shape[1]]

    def parts(self, stop):
        """Solver, data fit and penalty, as the package's estimators put them together."""
        from skglm.datafits import Huber, Logistic, Quadratic
        from skglm.experimental import PDCD_WS, Pinball
        from skglm.penalties import L1, L2
        from skglm.solvers import LBFGS, AndersonCD, ProxNewton

        long = {"max_iter": 1_000_000, "fit_intercept": False, "tol": stop}
        if self.loss in QUANTILES:
            scale = self.m / 2.0 if self.loss == "least_absolute" else self.m
            return PDCD_WS(**long), Pinball(QUANTILES[self.loss]), L1(self.lam * scale)
        fits = {"logistic": Logistic, "least_squares": Quadratic, "huber": lambda: Huber(self.kind.parameters["delta"])}
        if self.regularizer == "l2":
            return LBFGS(max_iter=1_000_000, tol=stop), fits[self.loss](), L2(self.lam)
        solver = ProxNewton(**long) if self.loss == "logistic" else AndersonCD(**long)
        return solver, fits[self.loss](), L1(self.lam)

    def dual_svm(self, stop):
        """Its LinearSVC: coordinate descent on the dual, in which the rows are the columns."""
        from skglm.datafits import QuadraticSVC
        from skglm.penalties import IndicatorBox
        from skglm.solvers import AndersonCD

        if sp.issparse(self.X):
            signed = sp.csc_matrix((sp.diags_array(self.y) @ self.X).T)
        else:
            signed = np.asfortranarray((self.y[:, None] * self.X).T)
        solver = AndersonCD(max_iter=1_000_000, p0=self.m, tol=stop, fit_intercept=False)
        return signed @ solver.solve(signed, self.y, QuadraticSVC(), IndicatorBox(self.C))[0]
