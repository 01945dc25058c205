"""Classes that are nodes of a tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from bmrm import losses
from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.joint import JointModel
from bmrm.estimators.labels import cost_matrix
from bmrm.estimators.minimizer import LAM
from bmrm.estimators.stored import takes_store
from bmrm.losses import HierarchicalHinge, HierarchicalSoftmax, Tree
from bmrm.losses.hierarchy import HierarchicalLoss
from bmrm.losses.tree import nodes_of, tree_of
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array
from bmrm.solvers import Solver


def _gives_probabilities(estimator: HierarchicalClassifier) -> bool:
    loss = getattr(estimator, "loss_", estimator.loss)
    if isinstance(loss, HierarchicalSoftmax) or loss == HierarchicalSoftmax.name:
        return True
    raise AttributeError(f"predict_proba needs loss='hierarchical_softmax', got {estimator.loss!r}")


def _as_labels(names: list[str], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return names of nodes as labels of the kind that y has; as text, where one of them is no number."""
    if kind.kind in "biuf":
        try:
            return np.array(names).astype(kind)
        except ValueError:
            return np.array(names)
    return np.array(names, dtype=kind if kind.kind == "O" else None)


class HierarchicalClassifier(ClassifierMixin, JointModel):  # type: ignore[misc]
    """Linear classification in a tree: the score of a class is the sum of the scores of the nodes on its path.

    What classes have in common is learned at the nodes above them. With the hinge, a wrong class costs its distance
    from the true one in the tree, unless costs are given.

    Parameters
    ----------
    loss : str, default="hierarchical_hinge"
        Or "hierarchical_softmax", which yields probabilities.
    tree : Tree, dict or list, optional
        A `bmrm.losses.Tree`; a mapping of each class to its parent (None at the top); nested mappings of names, or
        lists of them; or a list with the parent of each number. By default labels are paths such as ``"animal/cat"``.
    costs : matrix or dict, optional
        ``costs[true][predicted]``, as for `LinearClassifier`, over ``classes_``; the distance in the tree by default.
    nodes : {"auto", "leaves", "all"}, default="auto"
        Which nodes may be predicted; "auto" means all of them if an inner one is the label of a row, else the leaves.
    regularizer, regularizer_params
        As for `LinearClassifier`.
    lam, C, fit_intercept, penalize_intercept, solver, tol, max_iter, max_seconds, n_threads, warm_start
        As for `LinearClassifier`.
    random_state, verbose
        As for `LinearClassifier`.

    Attributes
    ----------
    tree_ : Tree
    classes_ : array of str
        The names of the nodes that may be predicted, in the order of the tree.
    coef_ : array of shape (n_nodes, d)
    intercept_ : array of shape (n_nodes,)
    certificate_ : Certificate
        What was proved: ``lower <= min J <= upper``; with ``objective_``, ``gap_``, ``converged_`` and the other
        attributes of `LinearClassifier`.

    See Also
    --------
    LinearClassifier

    Examples
    --------
    >>> import bmrm
    >>> X = [[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0]]
    >>> model = bmrm.HierarchicalClassifier(lam=1e-2).fit(X, ["animal/cat", "animal/dog", "plant"])
    >>> model.predict(X).tolist()
    ['animal/cat', 'animal/dog', 'plant']
    >>> model.predict_path(X)[0]
    ['animal', 'animal/cat']
    """

    _tasks: ClassVar[tuple[str, ...]] = ("hierarchy",)

    def __init__(
        self,
        *,
        loss: str = "hierarchical_hinge",
        tree: Any = None,
        costs: Any = None,
        nodes: str = "auto",
        regularizer: str | Regularizer = "l2",
        regularizer_params: dict[str, Any] | None = None,
        lam: float = LAM,
        C: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
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
        self.tree = tree
        self.costs = costs
        self.nodes = nodes
        self.regularizer = regularizer
        self.regularizer_params = regularizer_params
        self.lam = lam
        self.C = C
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
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
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> HierarchicalClassifier:
        """Find the weights, and prove how far from optimal they are at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), data frame, Store, Shards, or array or data frame of Dask
        y : array-like of shape (m,)
            Names of nodes; paths such as ``"a/b/c"`` where no tree is given.
        sample_weight : array-like of shape (m,), optional

        Returns
        -------
        self
        """
        X, y = self._checked_data(X, y=y)
        check_classification_targets(y)
        if len(np.unique(y)) < 2:
            raise ValueError(f"y has one class only, {y.tolist()[0]!r}; a classifier needs at least two classes")
        self.tree_ = tree_of(self.tree, y)
        targets = nodes_of(self.tree_, y)
        loss = self._loss_of(self.tree_, targets)
        self.classes_ = _as_labels([self.tree_.names[node] for node in loss.classes()], y.dtype)
        if self.costs is not None:
            loss = replace(cast(HierarchicalHinge, loss), delta=cost_matrix(self.costs, self.classes_))
        self._fit_jointly(X, y, targets, loss, sample_weight, outputs=self.tree_.n_nodes)
        return self

    def _loss_of(self, tree: Tree, targets: npt.NDArray[np.int64]) -> HierarchicalLoss:
        if self.nodes not in ("auto", "leaves", "all"):
            raise ValueError(f"nodes must be 'auto', 'leaves' or 'all', got {self.nodes!r}")
        inner = not np.isin(targets, tree.leaves()).all()
        nodes = ("all" if inner else "leaves") if self.nodes == "auto" else self.nodes
        if not isinstance(self.loss, str):
            raise ValueError(f"loss must be the name of a loss for hierarchies, got {self.loss!r}")
        cls = losses.LOSSES.get(self.loss)
        if cls is None or not issubclass(cls, HierarchicalLoss):
            known = sorted(name for name, each in losses.LOSSES.items() if issubclass(each, HierarchicalLoss))
            raise ValueError(f"loss must be one of {', '.join(known)}, got {self.loss!r}")
        if self.costs is not None and not issubclass(cls, HierarchicalHinge):
            raise ValueError("costs are for the loss hierarchical_hinge")
        return cast(HierarchicalLoss, losses.get(self.loss, tree=tree, nodes=nodes))

    @property
    def loss_params(self) -> dict[str, Any] | None:  # type: ignore[override]
        """None: the tree, the costs and the nodes are parameters of their own."""
        return None

    def _of_classes(self, X: Any) -> Array:
        scores = self._scores(X, None)
        return cast(HierarchicalLoss, self.loss_).class_scores(scores)

    def decision_function(self, X: Any) -> Array:
        """Return the scores (m, k) of the classes, sums over their paths; (m,) for two classes."""
        scores = self._of_classes(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row."""
        best = np.argmax(self._of_classes(X), axis=1)
        return np.asarray(self.classes_[best])

    def predict_path(self, X: Any) -> list[list[str]]:
        """Return the names of the nodes from the top to the class of each row."""
        scores = self._scores(X, None)
        best = cast(HierarchicalLoss, self.loss_).decide(scores)
        return [[self.tree_.names[node] for node in self.tree_.path(int(c))] for c in best]

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class; for the loss hierarchical_softmax only."""
        scores = self._scores(X, None)
        return cast(HierarchicalSoftmax, self.loss_).probabilities(scores)
