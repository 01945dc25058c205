"""LIBLINEAR through its own Python interface (liblinear-official)."""

import numpy as np

from benchmark_utils.adapter import Adapter, rungs

# -s of the command line: (loss, regularizer); C multiplies the sum of its losses, which have no factor 1/2.
TYPES = {
    "logistic primal": (0, "logistic", "l2"),
    "logistic dual": (7, "logistic", "l2"),
    "svm dual": (3, "hinge", "l2"),
    "l2svm dual": (1, "squared_hinge", "l2"),
    "l2svm primal": (2, "squared_hinge", "l2"),
    "logistic l1": (6, "logistic", "l1"),
    "svr dual": (13, "epsilon_insensitive", "l2"),
}
ABSOLUTE = {"epsilon_insensitive": 1.0, "least_absolute": 1.0, "quantile_0.5": 0.5}  # losses that svr can state


class Solver(Adapter):
    """-s, -c, -e; problem() is part of the fit."""

    name = "liblinear"
    package = "liblinear"
    requirements = ["pip::liblinear-official"]
    parameters = {"type": list(TYPES)}
    ladder = rungs(10.0, 1e-8)
    compiles = True  # the conversion of a CSR matrix
    ends_early = dict.fromkeys(ABSOLUTE, 1e-4)  # after 1000 epochs, whatever the tolerance

    def takes(self, loss, regularizer):
        """Each type is for one pair; support vector regression is also for absolute deviations."""
        if self.type == "svr dual":
            return loss in ABSOLUTE and regularizer == "l2"
        return TYPES[self.type][1:] == (loss, regularizer)

    def factor(self):
        """Of C: our squared hinge has the factor 1/2, and the median's loss is half the absolute deviation."""
        return 0.5 if self.loss == "squared_hinge" else ABSOLUTE.get(self.loss, 1.0)

    def fit(self, stop):
        """Train, and give the weights the sign of the first label."""
        from liblinear.liblinearutil import parameter, problem, train

        eps = self.kind.parameters.get("eps", 0.0)
        number = TYPES[self.type][0]
        options = f"-s {number} -c {self.factor() * self.C!r} -e {stop!r} -p {eps!r} -B -1 -q"
        model = train(problem(self.y, self.rows()), parameter(options))
        w = np.ctypeslib.as_array(model.w, (self.X.shape[1],)).copy()
        return w if self.kind.task == "regression" or model.label[0] > 0 else -w
