"""Semi-Markov models: a sequence is cut into segments, each with a label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bmrm import _core
from bmrm import _sparse as sparse
from bmrm._limits import check_length
from bmrm.structured.base import Array, Examples, Feature, Indices, StructuredModel
from bmrm.structured.inputs import attributes, each


class _Scores(NamedTuple):
    """What a segmentation adds up, or how often it has each."""

    token: Array
    first: Array
    last: Array
    length: Array
    pair: Array


class SemiMarkovModel(StructuredModel, name="segments"):
    """Segments (start, end, label) of at most so many tokens, which follow one another and cover a sequence.

    The score of a segmentation adds up, for each segment, the weights of (attribute, label) of all of its tokens, of
    (length, label) and, with boundaries, of the attributes of its first and of its last token; and a weight for each
    two neighboring labels. An input x is an array or a sparse matrix (tokens, n_attributes); an output a list of
    (start, end, label), the end being the next one's start. The cost of an output is the number of tokens with a wrong
    label and of tokens where a segment starts wrongly or does not start but should. The best output, and sums over
    all, take O(T (L k + k^2)), L being the largest length.

    Parameters
    ----------
    n_labels, n_attributes : int
    max_length : int
        The most tokens of a segment.
    n_lengths : int, optional
        Lengths from here on share their weights; all lengths have their own by default.
    boundaries : bool
        Whether the first and the last token of a segment have weights of their own.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> model = bmrm.SemiMarkovModel(n_labels=2, n_attributes=1, max_length=3)
    >>> x, w = np.array([[1.0], [2.0], [-1.0]]), np.zeros(model.dim)
    >>> w[model.blocks()["tokens"]] = [1.0, -1.0]
    >>> w[model.blocks()["lengths"]] = [0.0, 0.0, 0.1, 0.1, 0.0, 0.0]
    >>> model.argmax(x, w)
    [(0, 2, 0), (2, 3, 1)]

    References
    ----------
    Sarawagi and Cohen, Semi-Markov conditional random fields for information extraction (2004).
    """

    def __init__(
        self,
        n_labels: int,
        n_attributes: int,
        max_length: int,
        *,
        n_lengths: int | None = None,
        boundaries: bool = False,
    ) -> None:
        self.n_labels, self.n_attributes, self.max_length = n_labels, n_attributes, max_length
        self.n_lengths, self.boundaries = max_length if n_lengths is None else n_lengths, boundaries
        for name in ("n_labels", "n_attributes", "max_length", "n_lengths"):
            if getattr(self, name) < 1:
                raise ValueError(f"parameter '{name}' must be at least 1, got {getattr(self, name)}")
        if self.n_lengths > max_length:
            raise ValueError(f"parameter 'n_lengths' must be at most max_length={max_length}, got {n_lengths}")
        self.dim = max(block.stop for block in self.blocks().values())
        check_length(self.dim, f"a model of {n_labels} labels, {n_attributes} attributes and {self.n_lengths} lengths")

    def blocks(self) -> dict[str, slice]:
        """Return where in w the weights lie, each a table with one column for each label."""
        k, d = self.n_labels, self.n_attributes
        sizes = {"tokens": d * k, "lengths": self.n_lengths * k, "transitions": k * k}
        if self.boundaries:
            sizes |= {"first": d * k, "last": d * k}
        ends = np.cumsum(list(sizes.values())).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends)}

    def encode(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> Examples:
        """Check the examples and keep inputs as arrays or compressed rows."""
        return Examples(self, each(X, self._input), Y)

    def check(self, x: Any, y: Any) -> None:
        """Raise ValueError if y is no segmentation of x."""
        n = self._input(x).shape[0]
        segments = _table(y)
        if len(segments) == 0:
            raise ValueError("y has no segments")
        end = 0
        for s, (start, stop, label) in enumerate(segments.tolist()):
            if start != end:
                before = f"the one before ends at {end}" if s else "the first must start at 0"
                raise ValueError(f"segment {s} starts at {start}, but {before}: segments must cover all tokens once")
            if not 1 <= stop - start <= self.max_length:
                raise ValueError(
                    f"segment {s} from {start} to {stop} has {stop - start} tokens, expected 1 to {self.max_length}"
                )
            if not 0 <= label < self.n_labels:
                raise ValueError(f"segment {s} has label {label}, expected 0 to {self.n_labels - 1}")
            end = stop
        if end != n:
            raise ValueError(f"the last segment ends at {end}, but x has {n} tokens")

    def _input(self, x: Any) -> Any:
        return attributes(x, self.n_attributes)

    def joint_feature(self, x: Any, y: Any) -> Feature:
        """Return the sums of attributes, and the counts of lengths and of neighbors."""
        segments, blocks, k = _table(y), self.blocks(), self.n_labels
        start, end, label = segments.T
        labels, _ = self._tokens(segments)
        lengths = self._bin(end - start - 1) * k + label
        pairs = label[:-1] * k + label[1:]
        parts = [
            (blocks["tokens"], *_attributes_by_label(x, labels, k)),
            (blocks["lengths"], lengths, np.ones(len(lengths))),
            (blocks["transitions"], pairs, np.ones(len(pairs))),
        ]
        if self.boundaries:
            parts.append((blocks["first"], *_attributes_by_label(x[start], label, k)))
            parts.append((blocks["last"], *_attributes_by_label(x[end - 1], label, k)))
        indices = np.concatenate([block.start + indices for block, indices, _ in parts])
        return indices, np.concatenate([values for *_, values in parts])

    def delta(self, y: Any, other: Any) -> float:
        """Return the number of wrong labels and of wrong starts."""
        ends = [int(_table(segments)[-1:, 1].sum()) for segments in (y, other)]
        if ends[0] != ends[1]:
            raise ValueError(f"y covers {ends[0]} tokens and the other segmentation {ends[1]}")
        labels, starts = self._tokens(y)
        other_labels, other_starts = self._tokens(other)
        return float(np.count_nonzero(labels != other_labels) + np.count_nonzero(starts != other_starts))

    def _bin(self, lengths: Indices) -> Indices:
        """Return the rows of the table of lengths for lengths that count from 0."""
        return np.minimum(lengths, self.n_lengths - 1)

    def _bins(self, x: Any) -> Indices:
        """Return the rows for all lengths that segments of x can have."""
        return self._bin(np.arange(min(self.max_length, x.shape[0])))

    def _tokens(self, y: Any) -> tuple[Indices, Array]:
        """Return the label of each token, and 1 for those where a segment starts."""
        segments = _table(y)
        sizes = segments[:, 1] - segments[:, 0]
        if (segments[:1, 0] != 0).any() or (segments[1:, 0] != segments[:-1, 1]).any():
            raise ValueError("segments must follow one another from token 0")
        if sizes.size and not 1 <= sizes.min() <= sizes.max() <= self.max_length:
            raise ValueError(f"segments have {sizes.min()} to {sizes.max()} tokens, expected 1 to {self.max_length}")
        return _by_token(segments)

    def _scores(self, x: Any, w: Array) -> _Scores:
        k, blocks = self.n_labels, self.blocks()

        def table(name: str) -> Array:
            return np.ascontiguousarray(w[blocks[name]], dtype=np.float64).reshape(-1, k)

        nothing = np.zeros((x.shape[0], k))
        return _Scores(
            np.ascontiguousarray(x @ table("tokens")),
            np.ascontiguousarray(x @ table("first")) if self.boundaries else nothing,
            np.ascontiguousarray(x @ table("last")) if self.boundaries else nothing,
            np.ascontiguousarray(table("lengths")[self._bins(x)]),
            table("transitions"),
        )

    def argmax(self, x: Any, w: Array) -> list[tuple[int, int, int]]:
        """Return the best segmentation, by dynamic programming over ends and labels."""
        return _segments(_core.segments_best(*self._scores(x, w)))

    def augmented_argmax(self, x: Any, y: Any, w: Array) -> list[tuple[int, int, int]]:
        """Return the segmentation with the largest cost and score, both being sums over segments.

        A token where a segment truly starts costs 1, which a segment that starts there gives back.
        """
        scores = self._scores(x, w)
        labels, starts = self._tokens(y)
        wrong = (labels[:, None] != np.arange(self.n_labels)).astype(np.float64)
        token = scores.token + (wrong + starts[:, None])
        first = scores.first + np.where(starts, -1.0, 1.0)[:, None]
        return _segments(_core.segments_best(*scores._replace(token=token, first=first)))

    def log_partition(self, x: Any, w: Array) -> tuple[float, Feature]:
        """Return the log of the sum over all segmentations, and the expected joint feature."""
        scores, blocks = self._scores(x, w), self.blocks()
        expected = _Scores(*(np.zeros_like(part) for part in scores))
        value = _core.segments_expectations(*scores, *expected)
        phi = np.zeros(self.dim)
        phi[blocks["tokens"]] = (x.T @ expected.token).ravel()
        lengths = np.zeros((self.n_lengths, self.n_labels))
        np.add.at(lengths, self._bins(x), expected.length)
        phi[blocks["lengths"]] = lengths.ravel()
        phi[blocks["transitions"]] = expected.pair.ravel()
        if self.boundaries:
            phi[blocks["first"]] = (x.T @ expected.first).ravel()
            phi[blocks["last"]] = (x.T @ expected.last).ravel()
        return value, phi

    def outputs(self, x: Any) -> Iterator[list[tuple[int, int, int]]]:
        """Return all segmentations."""
        n = x.shape[0]

        def rest(start: int) -> Iterator[list[tuple[int, int, int]]]:
            if start == n:
                yield []
            for end in range(start + 1, min(n, start + self.max_length) + 1):
                for label in range(self.n_labels):
                    yield from ([(start, end, label), *others] for others in rest(end))

        return rest(0)

    @classmethod
    def examples(cls) -> list[StructuredModel]:
        """Return short and long segments, with and without boundaries, and a chain."""
        return [cls(2, 1, 2), cls(2, 2, 3, n_lengths=2, boundaries=True), cls(3, 2, 1), cls(1, 1, 4)]

    def draw(self, rng: np.random.Generator, n: int) -> tuple[list[Any], list[Any]]:
        """Draw sequences of 1 to 4 tokens, every other one sparse."""
        X: list[Any] = [rng.normal(size=(int(rng.integers(1, 5)), self.n_attributes)) for _ in range(n)]
        X = [sparse.csr_array(x * (rng.random(x.shape) < 0.5)) if i % 2 else x for i, x in enumerate(X)]
        outputs = [list(self.outputs(x)) for x in X]
        return X, [choices[int(rng.integers(len(choices)))] for choices in outputs]


def _table(y: Any) -> Indices:
    """Return segments as rows (start, end, label)."""
    segments = np.asarray(y)
    if segments.size == 0:
        return np.zeros((0, 3), dtype=np.int64)
    if segments.ndim != 2 or segments.shape[1] != 3 or segments.dtype.kind not in "iu":
        raise ValueError("y must be a list of segments (start, end, label), three integers each")
    return segments.astype(np.int64)


def _segments(flat: Any) -> list[tuple[int, int, int]]:
    return [(start, end, label) for start, end, label in flat.reshape(-1, 3).tolist()]


def _by_token(segments: Indices) -> tuple[Indices, Array]:
    """Return the label of each token, and 1 for those where a segment starts."""
    labels = np.repeat(segments[:, 2], segments[:, 1] - segments[:, 0])
    starts = np.zeros(len(labels))
    starts[segments[:, 0]] = 1.0
    return labels, starts


def _attributes_by_label(x: Any, labels: Indices, k: int) -> tuple[Indices, Array]:
    """Return the indices (attribute, label) and the values of the sums of rows with the same label."""
    rows = x
    if sparse.issparse(x):
        return rows.indices.astype(np.int64) * k + np.repeat(labels, np.diff(rows.indptr)), rows.data
    sums = rows.T @ (labels[:, None] == np.arange(k)).astype(np.float64)
    return np.arange(sums.size), sums.ravel()
