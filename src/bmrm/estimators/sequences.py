"""Labels for the tokens of sequences: conditional random fields and max-margin Markov models of chains."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bmrm import solvers
from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.labels import cost_matrix
from bmrm.estimators.minimizer import LAM, checked_weight
from bmrm.estimators.sequence_labels import label_codes, label_lists
from bmrm.estimators.structured import StructuredEstimator
from bmrm.parallel.base import Engine
from bmrm.regularizers import Regularizer
from bmrm.risks import structured_risk
from bmrm.risks.base import Array
from bmrm.sequence_model import SequenceModel
from bmrm.solvers import Solver
from bmrm.structured import ChainModel, Sequences
from bmrm.structured.attributes import Attributes, check_list
from bmrm.structured.tables import Feature, Table, Transition

_SEEN = ("seen", "all")


def _gives_marginals(estimator: SequenceLabeler) -> bool:
    if estimator.loss == "structured_log":
        return True
    raise AttributeError(f"predict_marginals needs loss='structured_log', got {estimator.loss!r}")


class SequenceLabeler(StructuredEstimator):
    """Labels for the tokens of sequences, by a linear chain: min over w of lam Omega(w) + sum_i p_i l(x_i, y_i, w).

    The score of labels y for a sequence x is the sum of the weights of all pairs of an attribute and a label, of all
    transitions from a label to the next, and of the labels at both ends. With the loss `structured_log` this is a
    conditional random field, with `structured_hinge` a max-margin Markov model. p are the sample weights of the
    sequences divided by their sum; 2 is the same as the sequence twice, 0 the same as no such sequence.

    Parameters
    ----------
    loss : {"structured_log", "structured_hinge"}, default="structured_log"
    regularizer : str or Regularizer, default="l2"
        A name of ``bmrm.regularizers.REGULARIZERS`` or an object.
    regularizer_params : dict, optional
        Parameters of a regularizer given by its name, for example ``{"r": 0.5}`` for elastic_net. Those of an object
        are named ``regularizer__r`` in `set_params` and in searches, as ``loss__tau`` is for a loss.
    lam : float, default=1e-4
        How much the regularizer counts against the mean loss of the sequences.
    C : float, optional
        Another way to give lam: lam = 1 / (C total sample weight). CRFsuite's c2 is the same as C = 1 / (2 c2) with the
        regularizer l2.
    emissions : {"seen", "all"}, default="seen"
        Which pairs of an attribute and a label have a weight: those that occur in training, or all.
    transitions : {"seen", "all", "none"}, default="seen"
        Which pairs of neighboring labels have a weight. The others are possible all the same.
    start_end : bool, default=True
        Whether labels have weights for the beginning and for the end of a sequence.
    hashing : int, optional
        The number of columns for hashed names of attributes, for example ``2**20``; the names are remembered by
        default.
    costs : matrix (k, k), dict, optional
        What it costs to predict one label where another is true, for `structured_hinge`: ``costs[true][predicted]`` in
        the order of the sorted labels, or a dict of dicts by labels (1 where nothing is said). 1 for every wrong label
        by default.
    scaling : {"margin", "slack"}, default="margin"
        How the costs enter `structured_hinge`.
    solver, tol, max_iter, max_seconds, n_threads, warm_start, random_state, verbose
        As for `LinearClassifier`. A warm start needs the same attributes and labels as before.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The labels, sorted.
    attributes_ : Attributes
        Which attribute each column stands for.
    coef_ : array of shape (dim,)
        All weights; `top_features` and `transition_weights` tell them by name.
    lam_ : float
        The lam that was used, whichever way it was given.
    certificate_ : Certificate
        What was proved: ``lower <= min J <= upper``; with ``objective_``, ``lower_bound_``, ``gap_``,
        ``relative_gap_``, ``converged_``, ``status_``, ``history_`` and ``n_iter_`` as for `LinearClassifier`.
    loss_ : StructuredHinge or StructuredLog
        The loss, with its `ChainModel`.

    See Also
    --------
    StructuredPredictor

    Notes
    -----
    Ctrl-C ends the fit: the attributes are set from the best point so far, then KeyboardInterrupt is raised.

    Examples
    --------
    >>> import bmrm
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}], [{"word": "cat"}]]
    >>> y = [["DT", "NN"], ["DT", "NN"], ["NN"]]
    >>> model = bmrm.SequenceLabeler(lam=0.01).fit(X, y)
    >>> model.converged_, model.predict([[{"word": "the"}, {"word": "bird"}]])
    (True, [['DT', 'NN']])
    """

    def __init__(
        self,
        *,
        loss: str = "structured_log",
        regularizer: str | Regularizer = "l2",
        regularizer_params: dict[str, Any] | None = None,
        lam: float = LAM,
        C: float | None = None,
        emissions: str = "seen",
        transitions: str = "seen",
        start_end: bool = True,
        hashing: int | None = None,
        costs: Any = None,
        scaling: str = "margin",
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
        self.regularizer = regularizer
        self.regularizer_params = regularizer_params
        self.lam = lam
        self.C = C
        self.emissions = emissions
        self.transitions = transitions
        self.start_end = start_end
        self.hashing = hashing
        self.costs = costs
        self.scaling = scaling
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None, engine: Engine | None = None
    ) -> SequenceLabeler:
        """Find w, and prove how far from optimal it is at most.

        Parameters
        ----------
        X : list of sequences
            A sequence is a list of tokens; a token is a dict of attributes, ``{"word": "the", "length": 3, "first":
            True}``, or a list of their names. Or a sequence is an array or a sparse matrix with a row for each token.
        y : list of lists of labels
            One label for each token.
        sample_weight : array-like, optional
            A number of at least 0 for each sequence.
        engine : Engine, optional
            The sequences go to its workers, in parts of about equal work.

        Returns
        -------
        self
        """
        check_list(X)
        Y = label_lists(y, len(X))
        weight = checked_weight(sample_weight, len(X), "sequence")
        kept = X
        if weight is not None and not weight.all():
            kept, Y = ([each for each, counts in zip(given, weight) if counts] for given in (X, Y))
            weight = weight[weight > 0.0]
        attributes, sequences = Attributes.learn(kept, self.hashing)
        classes, codes = label_codes(Y, np.diff(sequences.offsets))
        chain = self._chain(sequences, codes, classes)
        risk = structured_risk(sequences, codes, self._chosen_loss(chain), weight, self.n_threads, engine)
        resume = self._goes_on(attributes, classes, chain)
        sample = self._sample(X, y, risk, weight, sample_weight)
        self.classes_, self.attributes_, self.lam_ = classes, attributes, sample.lam
        self._minimize(sample, lambda _: None, 1, resume)
        return self

    def _chain(self, sequences: Sequences, codes: npt.NDArray[np.int64], classes: npt.NDArray[Any]) -> ChainModel:
        """Return the model with the weights that are asked for."""
        if self.emissions not in _SEEN:
            raise ValueError(f"emissions must be 'seen' or 'all', got {self.emissions!r}")
        if self.transitions not in (*_SEEN, "none"):
            raise ValueError(f"transitions must be 'seen', 'all' or 'none', got {self.transitions!r}")
        if self.costs is not None and self.loss != "structured_hinge":
            raise ValueError(f"costs are for the loss structured_hinge, not for {self.loss!r}")
        k = len(classes)
        options: dict[str, Any] = {
            "start_end": self.start_end,
            "costs": None if self.costs is None else cost_matrix(self.costs, classes),
            "pair_attributes": 0 if sequences.pairs is None else sequences.pairs.shape[1],
        }
        if self.emissions == "all":
            options["emissions"] = None
        if self.transitions != "seen":
            options["transitions"] = np.full((k, k), self.transitions == "all")
        return ChainModel.seen(sequences, codes, k, **options)

    def _goes_on(self, attributes: Attributes, classes: npt.NDArray[Any], chain: ChainModel) -> bool:
        """Whether the weights of the last fit mean the same now."""
        if not (hasattr(self, "coef_") and np.array_equal(self.classes_, classes)):
            return False
        before = self.loss_.model
        assert isinstance(before, ChainModel)
        return attributes.same_as(self.attributes_) and _same_weights(before, chain)

    def predict(self, X: Any) -> list[list[Any]]:
        """Return a list of labels for each sequence.

        Parameters
        ----------
        X : list of sequences
            As in `fit`; attributes that did not occur there are ignored.
        """
        return self.to_model().predict(X, self.n_threads)

    @available_if(_gives_marginals)  # type: ignore[untyped-decorator]
    def predict_marginals(self, X: Any, as_arrays: bool = False) -> list[Any]:
        """Return the probability of each label of each token; for the loss `structured_log` only.

        Parameters
        ----------
        X : list of sequences
        as_arrays : bool
            Whether to return an array (tokens, labels) for each sequence, in the order of ``classes_``, instead of a
            list with a dict ``{label: probability}`` for each token.
        """
        found = self.to_model().marginals(X, self.n_threads)
        if as_arrays:
            return found
        names = self.classes_.tolist()
        return [[dict(zip(names, row)) for row in table.tolist()] for table in found]

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the share of tokens whose label is right.

        Parameters
        ----------
        X : list of sequences
        y : list of lists of labels
            One that the model does not know counts as wrong.
        sample_weight : array-like, optional
            A number of at least 0 for each sequence.
        """
        found = self.predict(X)
        true = label_lists(y, len(found), [len(labels) for labels in found])
        right = np.array([sum(a == b for a, b in zip(*pair)) for pair in zip(true, found)], dtype=np.float64)
        lengths = np.array([len(labels) for labels in found], dtype=np.float64)
        weight = checked_weight(sample_weight, len(found), "sequence")
        shares: Array = np.ones(len(found)) if weight is None else weight
        return float(shares @ right / (shares @ lengths))

    def top_features(self, n: int = 20, label: Any = None) -> Table[Feature]:
        """Return the attributes with the largest weights, by absolute value, as a table.

        Parameters
        ----------
        n : int
            How many.
        label : optional
            Only those of this label.
        """
        return self.to_model().top_features(n, label)

    def transition_weights(self) -> Table[Transition]:
        """Return the weights of all transitions, and of the labels at both ends, as a table, the largest first."""
        return self.to_model().transitions()

    def to_model(self) -> SequenceModel:
        """Return the fitted labeler as a `SequenceModel`, which can be saved to a file without executable content."""
        check_is_fitted(self)
        last = self.history_[-1] if self.history_ else None
        return SequenceModel(
            coef=self.coef_,
            loss=self.loss_,
            attributes=self.attributes_,
            classes=self.classes_,
            regularizer=self._chosen_regularizer().name,
            lam=self.lam_,
            solver=solvers.get(self.solver).name,
            tol=self.tol,
            certificate=self.certificate_,
            status=self.status_,
            history={} if last is None else {
                "iterations": last.iteration, "passes": last.passes, "seconds": last.seconds,
            },
        )  # fmt: skip


def _same_weights(one: ChainModel, other: ChainModel) -> bool:
    """Whether two chains have weights for the same things."""
    if (one.dim, one.n_labels, one.weights.start_end) != (other.dim, other.n_labels, other.weights.start_end):
        return False
    ours, theirs = one.emission_table(np.zeros(one.dim)), other.emission_table(np.zeros(other.dim))
    same = np.array_equal(one.weights.transitions, other.weights.transitions)
    return same and all(np.array_equal(a, b) for a, b in zip(ours, theirs))
