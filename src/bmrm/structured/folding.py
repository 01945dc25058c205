"""Secondary structures of RNA: nested base pairs, scored by the loops that they close."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm.structured.base import Array, Examples, Feature, Indices, StructuredModel
from bmrm.structured.inputs import each

Bases: TypeAlias = npt.NDArray[np.uint8]

LETTERS = "ACGU"
_CODES = bytes(LETTERS.index(chr(c)) if chr(c) in LETTERS else 255 for c in range(256))
_PAIRS = frozenset({"AU", "UA", "CG", "GC", "GU", "UG"})
_HAIRPIN = 3  # bases that a pair encloses at least
_NOBODY = np.zeros(0, dtype=np.int64)


class FoldingModel(StructuredModel, name="folding"):
    """Foldings of RNA: which bases of a string over ACGU pair, the pairs being nested, scored loop by loop.

    The weights are those of nearest-neighbor models of energy: for pairs and stacks of two pairs; for hairpins by
    length and by the bases beside the closing pair; for bulges by length; for interior loops by length, asymmetry and
    the bases beside both pairs; for multiloops and the exterior by branches, the pairs that end them, and unpaired
    bases: 367 of them by default. AU, CG and GU pair, around three bases at least. An output is an array with the
    partner of each base, -1 where it has none, or a string of dots and brackets. The cost of an output is the number
    of pairs that only one of the two structures has. The best output, and sums over all, take O(n^2 L^2 + n^3), L
    being the longest loop.

    Parameters
    ----------
    max_loop : int
        The most unpaired bases of a bulge or an interior loop; structures with longer ones are no outputs.
    max_hairpin : int
        Hairpins of so many unpaired bases, or more, share a weight.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> model = bmrm.FoldingModel()
    >>> w = np.zeros(model.dim)
    >>> w[model.blocks()["stacks"]] = 1.0
    >>> model.dot_bracket(model.argmax("GGGAAAACCC", w))
    '(((....)))'

    References
    ----------
    D09 section 5.2; Zuker and Stiegler, Optimal computer folding of large RNA sequences (1981); McCaskill, The
    equilibrium partition function for RNA secondary structure (1990).
    """

    def __init__(self, max_loop: int = 30, max_hairpin: int = 30) -> None:
        for name, value, least in (("max_loop", max_loop, 2), ("max_hairpin", max_hairpin, _HAIRPIN)):
            if not least <= value <= 10000:
                raise ValueError(f"parameter '{name}' must lie between {least} and 10000, got {value}")
        self.max_loop, self.max_hairpin = max_loop, max_hairpin
        self.dim = max(block.stop for block in self.blocks().values())

    def blocks(self) -> dict[str, slice]:
        """Return where in w the weights of each kind lie."""
        parts = _core.fold_parts(self.max_loop, self.max_hairpin)
        ends = np.cumsum([size for _, size in parts]).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(parts, ends)}

    def encode(self, X: Sequence[str], Y: Sequence[Any] | None = None) -> Examples:
        """Check the examples and keep outputs as partners."""
        each(X, bases_of)
        examples = Examples(self, X, Y)
        examples.Y = None if Y is None else [partners_of(y) for y in Y]
        return examples

    def check(self, x: str, y: Any) -> None:
        """Raise ValueError if x has other letters than ACGU, or y is no structure of x."""
        _core.fold_feature(bases_of(x), partners_of(y), self.max_loop, self.max_hairpin)

    def joint_feature(self, x: str, y: Any) -> Feature:
        """Return how often the structure has each weight."""
        return _core.fold_feature(bases_of(x), partners_of(y), self.max_loop, self.max_hairpin)

    def delta(self, y: Any, other: Any) -> float:
        """Return the number of pairs that only one of the structures has."""
        a, b = partners_of(y), partners_of(other)
        different, here = a != b, np.arange(len(a))
        return float(np.count_nonzero(different & (a > here)) + np.count_nonzero(different & (b > here)))

    def argmax(self, x: str, w: Array) -> Indices:
        """Return the partners in the best structure, by dynamic programming over intervals."""
        return self._best(x, w, _NOBODY)

    def augmented_argmax(self, x: str, y: Any, w: Array) -> Indices:
        """Return the partners in the structure with the largest cost and score: a wrong pair scores 1 more."""
        return self._best(x, w, partners_of(y))

    def _best(self, x: str, w: Array, truth: Indices) -> Indices:
        return _core.fold_best(bases_of(x), np.ascontiguousarray(w), truth, self.max_loop, self.max_hairpin)

    def log_partition(self, x: str, w: Array) -> tuple[float, Feature]:
        """Return the log of the sum over all structures, and the expected joint feature."""
        return _core.fold_expectations(bases_of(x), np.ascontiguousarray(w), self.max_loop, self.max_hairpin)

    @staticmethod
    def dot_bracket(y: Any) -> str:
        """Return a structure as a string: brackets for pairs, dots for unpaired bases."""
        partner = partners_of(y)
        return "".join("." if j < 0 else "(" if j > i else ")" for i, j in enumerate(partner.tolist()))

    def outputs(self, x: str) -> Iterator[Indices]:
        """Return all structures."""
        for pairs in _structures(x, 0, len(x)):
            partner = np.full(len(x), -1, dtype=np.int64)
            for i, j in pairs:
                partner[i], partner[j] = j, i
            if self._has(x, partner):
                yield partner

    def _has(self, x: str, partner: Indices) -> bool:
        try:
            self.check(x, partner)
        except ValueError:
            return False
        return True

    @classmethod
    def examples(cls) -> list[StructuredModel]:
        """Return the usual loops, and so short ones that some structures are excluded."""
        return [cls(), cls(max_loop=2, max_hairpin=4)]

    def draw(self, rng: np.random.Generator, n: int) -> tuple[list[str], list[Indices]]:
        """Draw strings of up to 13 bases; every third has room for a multiloop."""
        X = []
        for i in range(n):
            length = 12 + int(rng.integers(2)) if i % 3 == 2 else int(rng.integers(1, 12))
            letters = rng.choice(list(LETTERS), size=length, p=[0.3, 0.25, 0.3, 0.15]).tolist()
            if i % 3 == 2:
                letters[:12] = "GGAAACGAAACC"
            X.append("".join(letters))
        outputs = [list(self.outputs(x)) for x in X]
        return X, [choices[int(rng.integers(len(choices)))] for choices in outputs]


def bases_of(x: str) -> Bases:
    """Return 0 to 3 for the letters A, C, G, U; other letters raise ValueError."""
    if not isinstance(x, str):
        raise ValueError(f"x must be a string over ACGU, got {type(x).__name__}")
    if not x:
        raise ValueError("x has no bases")
    codes = np.frombuffer(x.encode("latin-1", "replace").translate(_CODES), dtype=np.uint8)
    if codes.max() > 3:
        at = int(codes.argmax())
        raise ValueError(f"letter {x[at]!r} at position {at} is not one of A, C, G, U")
    return codes


def partners_of(y: Any) -> Indices:
    """Return the partner of each base, -1 for none, of a structure given so or by dots and brackets."""
    if isinstance(y, str):
        return _from_brackets(y)
    partner = np.asarray(y)
    if partner.ndim != 1 or partner.dtype.kind not in "iu":
        raise ValueError("y must be a string of dots and brackets or a list of partners, -1 for none")
    return np.ascontiguousarray(partner, dtype=np.int64)


def _from_brackets(text: str) -> Indices:
    partner, opened = np.full(len(text), -1, dtype=np.int64), []
    for i, sign in enumerate(text):
        if sign == "(":
            opened.append(i)
        elif sign == ")":
            if not opened:
                raise ValueError(f"the bracket at position {i} closes none")
            partner[i] = opened.pop()
            partner[partner[i]] = i
        elif sign != ".":
            raise ValueError(f"sign {sign!r} at position {i} is not one of '.', '(', ')'")
    if opened:
        raise ValueError(f"the bracket at position {opened[-1]} is not closed")
    return partner


def _structures(x: str, first: int, end: int) -> list[tuple[tuple[int, int], ...]]:
    """Return all nested sets of pairs between the positions."""
    if end - first < _HAIRPIN + 2:
        return [()]
    found = list(_structures(x, first + 1, end))
    for j in range(first + _HAIRPIN + 1, end):
        if x[first] + x[j] in _PAIRS:
            inside, outside = _structures(x, first + 1, j), _structures(x, j + 1, end)
            found += [((first, j), *some, *others) for some in inside for others in outside]
    return found
