"""This library: `bmrm.solve`, which stops by its own certificate."""

import bmrm
from benchmark_utils.adapter import THREADS, Adapter, rungs
from benchmark_utils.losses import LOSSES
from bmrm.problem import missing


class Solver(Adapter):
    """The stopping parameter is the proven relative gap."""

    name = "bmrm"
    package = "bmrm"
    requirements = ["pip::bmrm"]
    parameters = {"solver": ["auto"]}
    does = dict.fromkeys(LOSSES, ("l2", "l1"))
    ladder = rungs(1e-1, 1e-9, per_decade=1)
    limit = 60.0
    share = 0.9  # of the cap, after which it stops: the last step takes its time, and the process would be killed

    def build(self):
        """The problem from the raw arrays."""
        risk = bmrm.LinearRisk(self.X, self.y, self.kind.ours(), n_threads=THREADS)
        return bmrm.Problem(risk, self.regularizer, self.lam)

    def refused(self):
        """Whether the method does not take the problem."""
        return bool(missing(bmrm.solvers.get(self.solver), self.build()))

    def fit(self, stop):
        """Build the risk and solve."""
        result = bmrm.solve(self.build(), self.solver, tol=stop, max_seconds=min(self.limit, self.share * self.cap))
        self.info = {"converged": result.converged, "lower": result.certificate.lower, "passes": result.passes}
        return result.w
