"""What all adapters share: which problems they take, the scaling of lam, the ladder of tolerances."""

import importlib.util
import warnings

import numpy as np
import scipy.sparse as sp

from benchmark_utils.layout import BaseSolver
from benchmark_utils.losses import LOSSES

THREADS = 2


def rungs(loosest, tightest, per_decade=2):
    """Tolerances from loose to tight, so many for each factor of ten."""
    n = round(np.log10(loosest / tightest) * per_decade)
    return tuple(float(f"{loosest * 10.0 ** (-k / per_decade):.3g}") for k in range(n + 1))


EPOCHS = (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200, 300, 500, 700, 1000)


class Adapter(BaseSolver):
    """One way to minimize J(w) = lam Omega(w) + 1/m sum_i l(<x_i, w>, y_i), without intercept.

    Omega is 1/2 |w|^2 (``l2``) or the sum of absolute values (``l1``); the losses are those of this library, with
    its factors. `fit` turns lam into the peer's parameters; whatever it does counts, conversion of the data too.

    Attributes
    ----------
    package : str
        The module that must be there.
    does : dict
        Loss (name in the tables) -> regularizers.
    ladder : tuple
        Values of the peer's own stopping parameter, from the loosest to the tightest.
    reaches : float
        Relative distance to the optimum that it reaches on small problems if only given time; checked. None for
        random methods.
    ends_early : dict
        Loss -> the same where the peer has a limit of its own that no parameter lifts.
    compiles : bool
        Whether its first call compiles code: done once, before anything is timed.
    patience : float
        The cap of a fit in multiples of our time.
    most_columns : float
        With more columns it is not tried: it would need a matrix of columns x columns.
    pruned : bool
        Whether a fit may be stopped as soon as a faster peer is known.
    cap : float
        Seconds after which a fit is of no use: an adapter that can may end it then, others are killed.
    """

    sampling_strategy = "tolerance"
    package = ""
    does = {}
    ladder = rungs(1.0, 1e-9)
    reaches = 1e-6
    ends_early = {}
    compiles = False
    patience = 10.0
    most_columns = float("inf")
    pruned = True
    cap = float("inf")

    @classmethod
    def missing(cls):
        """The package that is not installed, or an empty string."""
        return "" if importlib.util.find_spec(cls.package) else cls.package

    def takes(self, loss, regularizer):
        """Whether this problem can be stated in the peer's terms."""
        return regularizer in self.does.get(loss, ())

    def reach(self, loss):
        """How near to the optimum it comes."""
        return self.ends_early.get(loss, self.reaches)

    @property
    def label(self):
        """Name in tables."""
        parts = [str(getattr(self, key)) for key in self.parameters]
        return " ".join([self.name, *parts])

    def skip(self, X, y, loss, regularizer, lam):
        """Tell benchopt which problems are taken."""
        fits = self.takes(loss, regularizer) and X.shape[1] <= self.most_columns
        return not fits, None if fits else f"{self.label} does not take {loss} with {regularizer} of this size"

    def set_objective(self, X, y, loss, regularizer, lam):
        """Take the problem; nothing is prepared here, as preparation counts."""
        self.X, self.y, self.loss, self.regularizer, self.lam = X, y, loss, regularizer, lam
        self.kind = LOSSES[loss]
        self.m = X.shape[0]
        self.C = 1.0 / (lam * self.m)  # lam Omega + 1/m sum l  ->  Omega + C sum l
        self.info = {}

    def warm_up(self):
        """Run once on a few rows and columns, so that neither imports nor compilers are timed."""
        whole = {key: getattr(self, key) for key in ("X", "y", "m", "C", "lam")}
        few = np.unique(np.concatenate([np.flatnonzero(self.y > np.mean(self.y))[:20], np.arange(min(20, self.m))]))
        X = self.X[few]
        columns = np.unique(X.indices)[:30] if sp.issparse(X) else np.arange(min(30, X.shape[1]))
        X = X[:, columns] / max(1.0, abs(X).max())  # raw columns would keep some of them busy for minutes
        self.set_objective(X, self.y[few], self.loss, self.regularizer, 0.01)
        self.run(self.ladder[len(self.ladder) // 2])  # at the loosest, some return before the code that compiles
        vars(self).update(whole)

    def run(self, stop):
        """Fit with one value of the peer's stopping parameter."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.w = np.asarray(self.fit(stop), dtype=np.float64).ravel()

    def get_result(self):
        """The weights."""
        return {"w": self.w}

    def fit(self, stop):
        """Return the weights; every adapter has its own."""
        raise NotImplementedError

    def rows(self):
        """The data as a CSR matrix."""
        return self.X if sp.issparse(self.X) else sp.csr_matrix(self.X)

    def columns(self):
        """The data by columns: CSC, or dense in Fortran's order."""
        return sp.csc_matrix(self.X) if sp.issparse(self.X) else np.asfortranarray(self.X)
