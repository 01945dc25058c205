"""Classes that are nodes of a tree: the score of a class is the sum of the scores on its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._traits import Trait
from bmrm.losses.base import Array, finite_targets
from bmrm.losses.bend import PathBend
from bmrm.losses.tree import Tree
from bmrm.losses.vector import Classes, CompiledRows, Costs, VectorLoss, checked_costs, probabilities

_EXAMPLE = Tree((-1, 0, 0, -1))


class PathRows:
    """Compiled rows over classes, whose scores are sums over the paths of a tree."""

    def __init__(self, inner: CompiledRows, parents: tuple[int, ...], classes: npt.NDArray[np.int64]) -> None:
        self._inner, self._parents, self._classes = inner, np.array(parents, dtype=np.int64), classes

    def _summed(self, scores: Array) -> Array:
        sums = scores.copy()
        _core.path_sums(self._parents, sums)
        return np.ascontiguousarray(sums[:, self._classes])

    def _spread(self, slopes: Array, out: Array) -> None:
        out.fill(0.0)
        out[:, self._classes] = slopes
        _core.path_slopes(self._parents, out)

    def evaluate(self, scores: Array, weight: Array | None, scale: float, slopes: Array, n_threads: int = 1) -> float:
        """Return the weighted sum, write its slopes."""
        sums = self._summed(scores)
        of_classes = np.empty_like(sums)
        value = self._inner.evaluate(sums, weight, scale, of_classes, n_threads)
        self._spread(of_classes, slopes)
        return value

    def extreme(self, scores: Array, along: Array, weight: Array | None, scale: float, slopes: Array) -> None:
        """Write the slopes that are steepest in the direction `along`."""
        sums = self._summed(scores)
        of_classes = np.empty_like(sums)
        self._inner.extreme(sums, self._summed(along), weight, scale, of_classes)
        self._spread(of_classes, slopes)

    def line(self, f: Array, g: Array, weight: Array | None, scale: float) -> Any:
        """Return the sum on a line through f in direction g."""
        return self._inner.line(self._summed(f), self._summed(g), weight, scale)


class HierarchicalLoss(VectorLoss):
    """A loss over the nodes of a tree; the targets are numbers of nodes."""

    task: ClassVar[Literal["hierarchy"]] = "hierarchy"
    tree: Tree
    nodes: Literal["leaves", "all"]

    def classes(self) -> npt.NDArray[np.int64]:
        """Return the nodes that may be predicted."""
        return self.tree.leaves() if self.nodes == "leaves" else np.arange(self.tree.n_nodes)

    def encode(self, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Classes:
        """Return the targets as places among the classes."""
        self.refuse_groups(groups)
        values, classes = finite_targets(y), self.classes()
        bad = np.flatnonzero(~np.isin(values, classes))
        if bad.size:
            node = values[bad[0]]
            inner = node in range(self.tree.n_nodes)
            raise ValueError(
                f"target of row {bad[0]} is {node:g}, "
                + ("an inner node; nodes='all' makes every node a class" if inner else "no node of the tree")
                + f" (loss '{self.name}', {self.tree.n_nodes} nodes)"
            )
        return Classes(np.searchsorted(classes, values).astype(np.int32), classes.size)

    def n_scores(self, targets: Classes) -> int:
        """Return the number of nodes."""
        return self.tree.n_nodes

    def redundant(self, targets: Classes) -> npt.NDArray[np.int64]:
        """Return one class at the top, or the last leaf and all that is above leaves: it adds nothing to them."""
        classes = self.classes()
        tops = [c for c in classes if self.tree.parents[c] < 0]
        least = np.setdiff1d(classes, tops[-1:] if self.nodes == "all" else classes[-1:])
        return np.setdiff1d(np.arange(self.tree.n_nodes), least)

    def _depth(self) -> int:
        return int(self.tree.on_paths().sum(axis=1).max())

    def largest_slopes(self, targets: Classes, weight: Array) -> float:
        """Return the norm of the slopes where no row prefers a node on its path, more for the rounding of the paths."""
        depth = self._depth()
        return float((1 + depth) * np.sqrt(2.0 * depth) * np.linalg.norm(weight))

    def adverse(self, scores: Array, targets: Classes, e: float) -> Array:
        """Return the scores with the nodes on the true path moved down, the others up; more for the sums on paths."""
        e *= 1 + self._depth()
        on_path = self.tree.on_paths()[self.classes()[targets.ids]] > 0.0
        return np.where(on_path, scores - e, scores + e)

    def class_scores(self, scores: Array) -> Array:
        """Return the scores of the classes from those of the nodes."""
        sums = np.array(scores, dtype=np.float64, order="C")
        _core.path_sums(np.array(self.tree.parents, dtype=np.int64), sums)
        return sums[:, self.classes()]

    def decide(self, scores: Array) -> Any:
        """Return the class, as a node, with the largest sum of scores on its path."""
        return self.classes()[np.argmax(self.class_scores(scores), axis=1)]

    def draw(self, rng: np.random.Generator, m: int) -> tuple[Any, None]:
        """Draw random classes."""
        return rng.choice(self.classes(), size=m), None

    def _check(self) -> None:
        if isinstance(self.tree, Mapping):  # as model files have it
            object.__setattr__(self, "tree", Tree(**self.tree))
        if not isinstance(self.tree, Tree):
            raise ValueError(f"parameter 'tree' of loss '{self.name}' must be a Tree, got {self.tree!r}")
        if self.nodes not in ("leaves", "all"):
            raise ValueError(f"parameter 'nodes' of loss '{self.name}' must be 'leaves' or 'all', got {self.nodes!r}")


@dataclass(frozen=True)
class HierarchicalHinge(HierarchicalLoss, name="hierarchical_hinge"):
    """max(s_c - s_y + Delta(y, c)) over c, s_c the sum of the scores on the path to c: the multiclass hinge in a tree.

    Classes with much of their path in common share what is learned about it. By
    default a wrong class costs its distance from the true one in the tree, so that a near miss costs less.

    Parameters
    ----------
    tree : Tree
    delta : matrix, optional
        The cost of class c where y is true, classes in the order of their nodes; the distance in the tree by default.
    nodes : {"leaves", "all"}
        Which nodes are classes.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> tree = bmrm.losses.Tree.from_paths(["animal/cat", "animal/dog", "plant"])
    >>> loss = bmrm.losses.HierarchicalHinge(tree)
    >>> loss.evaluate(np.zeros((1, 4)), loss.encode([1]), np.ones(1))
    (3.0, array([[-1., -1.,  0.,  1.]]))

    References
    ----------
    T07 section 3.2.
    """

    tree: Tree = _EXAMPLE
    delta: Costs | None = None
    nodes: Literal["leaves", "all"] = "leaves"

    traits = frozenset({Trait.PIECEWISE, Trait.DUAL_ROWS})
    floor = 0.0

    def __post_init__(self) -> None:
        self._check()
        if self.delta is not None:
            object.__setattr__(self, "delta", checked_costs(self.delta, self.name))
            if len(self.delta) != self.classes().size:
                raise ValueError(f"delta is for {len(self.delta)} classes, but the tree has {self.classes().size}")

    def costs(self) -> Array:
        """Return Delta as an array over the classes."""
        if self.delta is not None:
            return np.array(self.delta)
        classes = self.classes()
        return np.ascontiguousarray(self.tree.distances()[np.ix_(classes, classes)])

    def compiled(self, targets: Classes) -> CompiledRows:
        """Return the compiled rows."""
        inner = cast(CompiledRows, _core.max_margin(targets.ids, targets.k, self.costs(), None))
        return PathRows(inner, self.tree.parents, self.classes())

    @classmethod
    def examples(cls) -> list[Any]:
        """Return one over leaves and one over all nodes."""
        return [cls(_EXAMPLE), cls(_EXAMPLE, nodes="all")]


@dataclass(frozen=True)
class HierarchicalSoftmax(HierarchicalLoss, name="hierarchical_softmax"):
    """log(sum_c exp(s_c)) - s_y, s_c the sum of the scores on the path to c: the soft-max in a tree.

    Smooth, with probabilities for `predict_proba`.

    Parameters
    ----------
    tree : Tree
    nodes : {"leaves", "all"}
        Which nodes are classes.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> tree = bmrm.losses.Tree.from_paths(["animal/cat", "animal/dog", "plant"])
    >>> loss = bmrm.losses.HierarchicalSoftmax(tree)
    >>> round(loss.evaluate(np.zeros((1, 4)), loss.encode([1]), np.ones(1))[0], 6)
    1.098612

    References
    ----------
    T07 section 3.2.
    """

    tree: Tree = _EXAMPLE
    nodes: Literal["leaves", "all"] = "leaves"

    traits = frozenset({Trait.SMOOTH_RISK, Trait.CURVED_ROWS})
    floor = 0.0

    def __post_init__(self) -> None:
        self._check()

    def compiled(self, targets: Classes) -> CompiledRows:
        """Return the compiled rows."""
        return PathRows(cast(CompiledRows, _core.softmax(targets.ids, targets.k)), self.tree.parents, self.classes())

    def free_constants(self, targets: Classes) -> npt.NDArray[np.int64]:
        """Return the classes that have rows, but one: the last that has no such class above it."""
        present = self.classes()[np.unique(targets.ids)]
        on_top = [c for c in present if np.isin(self.tree.path(int(c)), present).sum() == 1]
        return np.setdiff1d(present, on_top[-1:])

    def bend(self, scores: Array, weight: Array, n_threads: int = 1) -> PathBend:
        """Return the second derivatives of the soft-max, spread over the paths."""
        return PathBend(scores, weight, np.array(self.tree.parents, dtype=np.int64), self.classes())

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities of the classes, each row adding up to 1."""
        return probabilities(self.class_scores(scores))
