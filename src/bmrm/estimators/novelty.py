"""Novelty detection by a linear score of the columns, or of kernels with landmark rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin

from bmrm.data import Design
from bmrm.data.elsewhere import Elsewhere
from bmrm.estimators.base import LinearModel
from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.kernel_map import KernelMap
from bmrm.estimators.minimizer import LAM, checked_weight, seed_of
from bmrm.estimators.stored import takes_store
from bmrm.losses import Loss, NuNovelty
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array
from bmrm.solvers import Solver

_ROUNDING = 1e-10  # of the threshold
# Where nobody says nu, nine tenths of the rows shape the score of a kernel map: few rows at the edge, some of which are
# novel already, must not. Figures are in docs/novelty.md.
_NU = 0.9
_NOVEL = 0.1  # share of novel rows where nobody says one, that of `NuNovelty`


class NoveltyDetector(OutlierMixin, LinearModel):  # type: ignore[misc]
    """Novelty detection: min over w, rho of lam Omega(w) + sum_i p_i max(0, rho - <phi(x_i), w>) - nu rho.

    p are the sample weights divided by their sum; a row is novel if its score <phi(x), w> lies below rho. phi are
    kernels with landmark rows, or the columns themselves. This is the one-class support vector machine; with the loss
    "novelty", rho is given instead of learned.

    Parameters
    ----------
    loss : str or Loss, default="nu_novelty"
        A name of ``bmrm.losses.LOSSES`` or an object, for novelty detection.
    loss_params : dict, optional
        Parameters of a loss given by its name, for example ``{"nu": 0.05}``. Without nu, and with kernels, nu is 0.9:
        then the score resembles a density of nearly all rows, which is more accurate where some of them are novel.
    features : {"auto", "kernel", "linear"}, default="auto"
        "kernel" maps rows by kernels of the scaled columns with landmark rows (`KernelMap`), so that neither the origin
        nor the units of X matter. "linear" takes the columns as they are: the score is <x, w>, and X must not be
        centered, because it tells rows from the origin only. "auto" is "kernel" for dense rows in memory, and "linear"
        for sparse ones, a Store, Shards and Dask.
    n_landmarks : int, default=200
        Rows that are drawn for the kernel map. The map takes 8 n_landmarks bytes for each row of X.
    contamination : float, optional
        Share of the rows of the fit, by weight, that shall be novel, at least 0 and below 1: it moves the threshold
        ``offset_``. By default the threshold is the loss's own; if nu is not given either, it is that of 0.1.
    regularizer : str or Regularizer, default="l2"
        A name of ``bmrm.regularizers.REGULARIZERS`` or an object, which may carry weights and bounds for the
        coordinates of w: those of the map, if there is one.
    regularizer_params : dict, optional
        Parameters of a regularizer given by its name, for example ``{"r": 0.5}`` for elastic_net. Those of an object
        are named ``regularizer__r`` in `set_params` and in searches, as ``loss__tau`` is for a loss.
    lam : float, default=1e-4
        How much the regularizer counts against the mean loss. With the loss nu_novelty it only scales the scores.
    C : float, optional
        Another way to give lam, as support vector machines do: lam = 1 / (C total sample weight). Give one of
        the two.
    solver : str or Solver, default="auto"
        A name of ``bmrm.solvers.SOLVERS`` or an object.
    tol : float, default=1e-3
        Relative gap at which the fit is finished: the objective is then proved to be at most 0.1% above the
        smallest possible one. The mean loss of m rows says the loss on new data no better than to about
        1 / sqrt(m) of it, so up to a million rows a smaller gap is lost in the noise of the sample; ask for
        1e-6 and less to compare coefficients.
    max_iter : int, optional
        The most iterations; no limit by default, because the gap ends the fit.
    max_seconds : float, optional
        The longest time for the fit; no limit by default.
    n_threads : int, optional
        All cores by default, or for -1 (all but one for -2). The result is the same for any number.
    warm_start : bool, default=False
        Whether to begin where the last fit ended.
    random_state : int, RandomState or None
        For the landmarks, and for solvers that draw random numbers.
    verbose : bool, default=False
        Whether to show objective, bound and gap while fitting.

    Attributes
    ----------
    coef_ : array of shape (d,), or one number for each feature of the map
    feature_map_ : KernelMap or None
        phi; None for linear features.
    offset_ : float
        The threshold rho: ``decision_function`` is ``score_samples`` less this.
    certificate_ : Certificate
        What was proved: ``lower <= min J <= upper``.
    objective_, lower_bound_, gap_, relative_gap_ : float
        The certificate's numbers.
    converged_ : bool
        Whether the gap is closed.
    status_ : Status
        Why the fit ended; ``status_.advice`` is a sentence.
    history_ : tuple of Record
        One record for each iteration.
    n_iter_ : int
        Number of iterations.
    loss_ : Loss
        The loss.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.

    See Also
    --------
    LinearClassifier, LinearRegressor

    Notes
    -----
    Ctrl-C ends the fit: the attributes are set from the best point so far, then KeyboardInterrupt is raised.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = 3.0 + np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = bmrm.NoveltyDetector(contamination=0.05).fit(X)
    >>> model.predict([[3.0, 3.0], [0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1, -1])
    >>> float(np.mean(model.predict(X) == -1))
    0.05

    Linear features see rows in the direction of the origin only:

    >>> model = bmrm.NoveltyDetector(features="linear", loss_params={"nu": 0.05}, tol=1e-6).fit(X)
    >>> model.predict([[3.0, 3.0], [0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1,  1])
    """

    _tasks: ClassVar[tuple[str, ...]] = ("novelty",)

    def __init__(
        self,
        *,
        loss: str | Loss = "nu_novelty",
        loss_params: dict[str, Any] | None = None,
        features: str = "auto",
        n_landmarks: int = 200,
        contamination: float | None = None,
        regularizer: str | Regularizer = "l2",
        regularizer_params: dict[str, Any] | None = None,
        lam: float = LAM,
        C: float | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.loss_params = loss_params
        self.features = features
        self.n_landmarks = n_landmarks
        self.contamination = contamination
        self.regularizer = regularizer
        self.regularizer_params = regularizer_params
        self.lam = lam
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    @takes_store
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> NoveltyDetector:
        """Find w and rho, and prove how far from optimal they are at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), data frame, Store, Shards, or array or data frame of Dask
            float32 and float64, C-ordered or of compressed rows, are used in place.
        y : ignored
            There are no targets.
        sample_weight : array-like of shape (m,), optional
            Numbers of at least 0.
        offset : array-like of shape (m,), optional
            A known shift of each score.

        Returns
        -------
        self
        """
        loss = self._chosen_loss()
        X = self._checked_data(X)
        weight = checked_weight(sample_weight, X.shape[0])
        kernel = self._takes_kernel(X)
        contamination = self._chosen_contamination()
        if kernel and self._leaves_nu_open():
            loss = NuNovelty(nu=_NU)
        self.feature_map_ = self._learned_map(X, weight) if kernel else None
        X = X if self.feature_map_ is None else self.feature_map_.transform(X)
        sample = self._sample(X, None, loss, sample_weight, offset, weight)
        try:
            self._minimize(sample, lambda _: None)
        finally:  # after Ctrl-C as well
            if contamination is not None and hasattr(self, "coef_"):
                scores = sample.design.dot(np.append(self.coef_, 0.0) if sample.design.intercept else self.coef_)
                scores = scores if sample.offset is None else scores + sample.offset
                self.offset_ = _share_below(scores, weight, contamination)
        return self

    def _leaves_nu_open(self) -> bool:
        return self.loss == NuNovelty.name and "nu" not in (self.loss_params or {})

    def _takes_kernel(self, X: Any) -> bool:
        """Whether rows are mapped; parameters that do not fit raise an error."""
        if self.features not in ("auto", "kernel", "linear"):
            raise ValueError(f"features must be 'auto', 'kernel' or 'linear', got {self.features!r}")
        elsewhere = isinstance(X, Elsewhere)
        if self.features == "linear" or (self.features == "auto" and (elsewhere or hasattr(X, "tocsr"))):
            return False
        if elsewhere:
            raise ValueError(f"features='kernel' needs rows in memory, got {type(X).__name__}: take features='linear'")
        n = self.n_landmarks
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n_landmarks must be a whole number of at least 1, got {n!r}")
        return True

    def _learned_map(self, X: Any, weight: Array | None) -> KernelMap:
        Design(X, n_threads=self.n_threads)  # rows that are not finite raise its error
        return KernelMap.learn(X, weight, self.n_landmarks, seed_of(self.random_state))

    def _chosen_contamination(self) -> float | None:
        """Return the share of rows below the threshold; None for the threshold of the loss."""
        share = self.contamination
        if share is None:
            return _NOVEL if self._leaves_nu_open() else None
        if not (isinstance(share, (int, float, np.number)) and 0.0 <= share < 1.0) or isinstance(share, bool):
            raise ValueError(f"contamination must be a share of the rows, at least 0 and below 1, got {share!r}")
        return float(share)

    def _checked_data(self, X: Any, **options: Any) -> Any:
        """Return X checked, and mapped if it comes after the fit."""
        X = super()._checked_data(X, **options)
        if options.get("reset") is not False or self.feature_map_ is None:
            return X
        Design(X, n_threads=self.n_threads)
        return self.feature_map_.transform(X)

    def score_samples(self, X: Any, offset: npt.ArrayLike | None = None) -> Array:
        """Return the scores <phi(x), w>: the smaller, the more novel.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        offset : array-like of shape (m,), optional
            A known shift of each score.
        """
        return np.asarray(self.decision_function(X, offset) + self.offset_)

    def decision_function(self, X: Any, offset: npt.ArrayLike | None = None) -> Array:
        """Return the scores less the threshold: negative for novel rows, 0 where the difference is rounding only.

        The rows that the threshold rests on have exactly its score but for rounding; they are not novel.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        offset : array-like of shape (m,), optional
            A known shift of each score.
        """
        decision = self._scores(X, offset)[:, 0]
        decision[np.abs(decision) <= _ROUNDING * abs(self.offset_)] = 0.0
        return decision

    def predict(self, X: Any, offset: npt.ArrayLike | None = None) -> npt.NDArray[np.int_]:
        """Return -1 for novel rows and 1 for the others.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        offset : array-like of shape (m,), optional
            A known shift of each score.
        """
        return np.where(self.decision_function(X, offset) >= 0.0, 1, -1)

    def _coefficients(self, points: Array) -> dict[str, Any]:
        w = points[0]
        d = self.n_features_in_ if self.feature_map_ is None else self.feature_map_.mixing.shape[1]
        threshold = -float(w[d]) if self.loss_.learns_offset else float(getattr(self.loss_, "rho", 0.0))
        return {"coef_": w[:d].copy(), "offset_": threshold}

    def _linear_parts(self) -> tuple[Array, Array]:
        return self.coef_[None, :], np.array([-self.offset_])


def _share_below(scores: Array, weight: Array | None, share: float) -> float:
    """Return the largest score with at most that share of the weight below it."""
    order = np.argsort(scores, kind="stable")
    counted = order if weight is None else order[weight[order] > 0.0]
    p = np.ones(counted.size) if weight is None else weight[counted]
    below = np.concatenate([[0.0], np.cumsum(p)[:-1]])
    last = int(np.searchsorted(below, share * p.sum() * (1.0 + 1e-12), side="right")) - 1
    return float(scores[counted[last]])
