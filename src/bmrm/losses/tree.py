"""A tree of classes, however it is given: parents, nested names, or labels that are paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SEPARATOR = "/"


@dataclass(frozen=True)
class Tree:
    """Nodes 0, ..., n - 1, each after its parent; nodes without a parent stand below one root that is no node.

    Parameters
    ----------
    parents : tuple of int
        The parent of each node, -1 for none. Any order is accepted by `from_parents`.
    names : tuple of str, optional
        The path of each node; its number by default.

    Examples
    --------
    >>> from bmrm.losses import Tree
    >>> tree = Tree.from_paths(["animal/cat", "animal/dog", "plant"])
    >>> tree.names
    ('animal', 'animal/cat', 'animal/dog', 'plant')
    >>> tree.distances()[1].tolist()
    [1.0, 0.0, 2.0, 3.0]
    """

    parents: tuple[int, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parents = tuple(int(p) for p in self.parents)
        if len(parents) < 2:
            raise ValueError(f"a tree of classes needs at least two nodes, got {len(parents)}")
        bad = [v for v, p in enumerate(parents) if not -1 <= p < v]
        if bad:
            raise ValueError(
                f"node {bad[0]} has the parent {parents[bad[0]]}; parents come before their children, -1 stands for "
                "none (Tree.from_parents takes any order)"
            )
        names = tuple(map(str, self.names or range(len(parents))))
        if len(set(names)) != len(parents):
            raise ValueError(f"a tree of {len(parents)} nodes needs as many different names, got {len(set(names))}")
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "names", names)

    @classmethod
    def from_parents(cls, parents: Mapping[Any, Any] | Sequence[Any]) -> Tree:
        """Make a tree from child -> parent: a mapping of names, or a list with the parent of each number.

        A node without a parent has None or -1, or is named as a parent only.
        """
        above = dict(parents) if isinstance(parents, Mapping) else _numbered(parents)
        above = {child: None if parent is None or parent == -1 else parent for child, parent in above.items()}
        for parent in list(above.values()):
            if parent is not None:
                above.setdefault(parent, None)
        order: dict[Any, int] = {}
        for child in above:
            path = [child]
            while (parent := above[path[-1]]) is not None and parent not in order:
                if parent in path:
                    raise ValueError(f"the hierarchy has a cycle through {parent!r}")
                path.append(parent)
            for node in reversed(path):
                order.setdefault(node, len(order))
        nodes = sorted(order, key=order.__getitem__)
        up = [-1 if above[node] is None else order[above[node]] for node in nodes]
        return cls(tuple(up), tuple(str(node) for node in nodes))

    @classmethod
    def from_nested(cls, nested: Mapping[str, Any]) -> Tree:
        """Make a tree from nested mappings of names; a leaf has an empty one, or None; a list of names is of leaves."""
        above: dict[str, str | None] = {}

        def visit(below: Any, parent: str | None) -> None:
            if below is not None and not isinstance(below, (Mapping, list, tuple, set)):
                raise ValueError(f"below {parent!r} stands {below!r}, where names of classes are expected")
            for name in below or {}:
                if str(name) in above:
                    raise ValueError(f"the hierarchy names {name!r} twice: a class has one parent")
                above[str(name)] = parent
                visit(below[name] if isinstance(below, Mapping) else None, str(name))

        visit(nested, None)
        return cls.from_parents(above)

    @classmethod
    def from_paths(cls, labels: Iterable[str]) -> Tree:
        """Make a tree from labels such as ``a/b/c``; every part of a path is a node."""
        above: dict[str, str | None] = {}
        for label in labels:
            parts = str(label).split(SEPARATOR)
            if "" in parts:
                raise ValueError(f"the label {str(label)!r} has an empty part; paths look like a/b/c")
            for end in range(1, len(parts) + 1):
                above[SEPARATOR.join(parts[:end])] = SEPARATOR.join(parts[: end - 1]) or None
        return cls.from_parents(dict(sorted(above.items())))

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return len(self.parents)

    def leaves(self) -> npt.NDArray[np.int64]:
        """Return the nodes without children."""
        return np.setdiff1d(np.arange(self.n_nodes), np.array(self.parents))

    def path(self, node: int) -> list[int]:
        """Return the nodes from the top to this one."""
        path = [node]
        while self.parents[path[-1]] >= 0:
            path.append(self.parents[path[-1]])
        return path[::-1]

    def on_paths(self) -> npt.NDArray[np.float64]:
        """Return the matrix with 1 where the node of the column is on the path to that of the row."""
        matrix = np.eye(self.n_nodes)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                matrix[node] += matrix[parent]
        return matrix

    def distances(self) -> npt.NDArray[np.float64]:
        """Return the number of edges between any two nodes."""
        paths = self.on_paths()
        depth = paths.sum(axis=1)
        distances: npt.NDArray[np.float64] = depth[:, None] + depth - 2.0 * paths @ paths.T
        return distances


def tree_of(given: Any, labels: npt.NDArray[Any]) -> Tree:
    """Return the tree that is meant: given as one, by parents, by nested names, or by labels that are paths."""
    if given is None:
        return Tree.from_paths(np.unique(labels))
    if isinstance(given, Tree):
        return given
    if isinstance(given, Mapping) and any(isinstance(below, (Mapping, list, tuple, set)) for below in given.values()):
        return Tree.from_nested(given)
    return Tree.from_parents(given)


def _numbered(parents: Any) -> dict[Any, Any]:
    """Return the parents of 0, 1, ... by number; each is the number of another one, or -1 or None."""
    if isinstance(parents, str) or not isinstance(parents, (Sequence, np.ndarray)):
        raise ValueError(f"a tree is given by a mapping, or a list with the parent of each number, got {parents!r}")
    above = dict(enumerate(parents))
    for child, parent in above.items():
        whole = isinstance(parent, (int, np.integer)) and not isinstance(parent, bool)
        if parent is not None and not (whole and -1 <= parent < len(above)):
            raise ValueError(
                f"the parent of {child} is {parent!r}; in a list of parents it is a number from 0 to {len(above) - 1}, "
                "or -1 for none (names take a mapping of each class to its parent)"
            )
    return {child: None if parent is None else int(parent) for child, parent in above.items()}


def nodes_of(tree: Tree, labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the number of each label's node."""
    place = {name: node for node, name in enumerate(tree.names)}
    found, codes = np.unique(labels, return_inverse=True)
    unknown = [label for label in found.tolist() if str(label) not in place]
    if unknown:
        row = int(np.argmax(labels == unknown[0]))
        raise ValueError(f"row {row} has the label {unknown[0]!r}, which is not in the hierarchy")
    return np.array([place[str(label)] for label in found.tolist()], dtype=np.int64)[codes]
