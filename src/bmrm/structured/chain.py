"""Chains: a label for each token of a sequence, scored by attributes, transitions, start and end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm import _sparse as sparse
from bmrm.structured.base import Array, Feature, Indices, Scaling, ScoredModel, StructuredModel
from bmrm.structured.chain_examples import ChainExamples, Labels, flat_labels
from bmrm.structured.chain_weights import ChainWeights, checked_costs
from bmrm.structured.sequences import Sequences

_UNEVEN = "wrong labels cost different amounts; slack rescaling of a chain is exact only where all cost the same"


class ChainModel(ScoredModel, name="chain"):
    """sum_t <emission weights of y_t, x_t> + transition from y_t-1 to y_t, plus start and end: linear chains.

    With `structured_log` it is a conditional random field, with `structured_hinge` a max-margin Markov network. Best
    labels come from Viterbi's recursion, sums over all labelings from forward-backward.

    Parameters
    ----------
    n_labels : int
        Labels are 0 to n_labels - 1.
    n_attributes : int
        Columns of the tokens.
    emissions : tuple of arrays (indptr, labels), optional
        The labels that each attribute has a weight for, as compressed rows; by default all.
    transitions : bool array (n_labels, n_labels), optional
        Which transitions have a weight, the label before by rows; by default all. The others have score 0: they are
        possible all the same.
    start_end : bool
        Whether labels have weights for being the first and the last one.
    pair_attributes : int
        Attributes of the steps between tokens, each with a weight for every pair of labels. Sequences then come with
        a second matrix, see `Sequences`.
    costs : array, optional
        What a wrong label costs: one number for each true label, or a matrix, the true label by rows, with a diagonal
        of 0. By default 1.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> model = bmrm.ChainModel(n_labels=2, n_attributes=1)
    >>> model.dim  # two emissions, four transitions, two starts, two ends
    10
    >>> model.argmax(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0] + [0.0] * 8))
    array([0, 1], dtype=int32)

    References
    ----------
    S08 section 3.4, T07 section 3.3, Y10 section 9.
    """

    def __init__(
        self,
        n_labels: int,
        n_attributes: int,
        *,
        emissions: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        transitions: npt.ArrayLike | None = None,
        start_end: bool = True,
        pair_attributes: int = 0,
        costs: npt.ArrayLike | None = None,
    ) -> None:
        self.weights = ChainWeights(n_labels, n_attributes, emissions, transitions, start_end, pair_attributes)
        self.n_labels, self.n_attributes = n_labels, n_attributes
        self.pair_attributes = pair_attributes
        self.costs = checked_costs(costs, n_labels)
        off = self.costs[~np.eye(n_labels, dtype=bool)]
        self._each = float(off[0]) if off.size and bool((off == off[0]).all()) else 0.0
        if self._each == 0.0:
            self.lacks = {"slack_argmax": _UNEVEN}
        self.dim = self.weights.dim

    @classmethod
    def seen(cls, sequences: Any, labels: Any, n_labels: int, **options: Any) -> ChainModel:
        """Return a model with weights for the attribute-label pairs and transitions of the examples only, as CRFsuite.

        Parameters
        ----------
        sequences : Sequences, or what `Sequences.of` takes
        labels : list of int arrays, or one flat array
        n_labels : int
        **options
            Of the model.
        """
        X = Sequences.of(sequences)
        y = flat_labels(labels, X, n_labels)
        tokens = sparse.csr_array(X.tokens)
        present = sparse.csr_array((tokens.data != 0.0, tokens.indices, tokens.indptr), tokens.shape, dtype=np.int32)
        present.eliminate_zeros()
        indicators = sparse.csr_array((np.ones(y.size, np.int32), y, np.arange(y.size + 1)), shape=(y.size, n_labels))
        pairs = sparse.csr_array(present.T @ indicators)
        pairs.sort_indices()
        is_step = np.ones(y.size, dtype=bool)
        is_step[X.offsets[:-1]] = False
        steps = np.flatnonzero(is_step)
        transitions = np.zeros((n_labels, n_labels), dtype=bool)
        transitions[y[steps - 1], y[steps]] = True
        given: dict[str, Any] = {"emissions": (pairs.indptr, pairs.indices), "transitions": transitions}
        return cls(n_labels, tokens.shape[1], **(given | options))

    # What the examples are.

    def encode(self, X: Any, Y: Any = None) -> ChainExamples:
        """Check sequences and labels and gather them for the compiled code."""
        sequences = Sequences.of(X, self.n_attributes)
        n_pairs = 0 if sequences.pairs is None else sequences.pairs.shape[1]
        if n_pairs != self.pair_attributes:
            raise ValueError(f"steps have {n_pairs} attributes, the model has {self.pair_attributes} pair attributes")
        y = None if Y is None else flat_labels(Y, sequences, self.n_labels)
        weights = self.weights
        return ChainExamples(sequences, y, self.n_labels, weights.starts, weights.labels, n_pairs)

    def check(self, x: Any, y: Any) -> None:
        """Raise ValueError if y are no labels for x."""
        self.encode([x], [y])

    # Scores of all examples, losses of scores.

    def scores(self, examples: ChainExamples, w: Array, n_threads: int) -> Array:
        """Return the scores of tokens, transitions, start, end and steps."""
        f = examples.buffers.take()
        at, blocks = examples.parts, self.blocks()
        examples.emissions.scores(w[blocks["emissions"]], f[at["emissions"]], n_threads)
        self.weights.spread(w, f[at["transitions"].start : at["end"].stop], examples.row)
        if examples.edges is not None:
            examples.edges.scores(w[blocks["pairs"]], f[at["pairs"]], n_threads)
        return f

    def pulled_back(self, examples: ChainExamples, slopes: Array, n_threads: int) -> Array:
        """Return the gradient by w of <slopes, scores>."""
        return self._pulled_back(examples, examples.emissions, examples.edges, slopes, n_threads)

    def _pulled_back(self, examples: ChainExamples, emissions: Any, edges: Any, slopes: Array, n_threads: int) -> Array:
        g = np.empty(self.dim)
        at, blocks = examples.parts, self.blocks()
        emissions.gradient(slopes[at["emissions"]], g[blocks["emissions"]], n_threads)
        self.weights.gather(slopes[at["transitions"].start : at["end"].stop], examples.row, g)
        if edges is not None:
            edges.gradient(slopes[at["pairs"]], g[blocks["pairs"]], n_threads)
        return g

    def room(self, examples: ChainExamples, n: int) -> Array:
        """Return an array whose memory may have been used before."""
        return examples.buffers.take()

    def most_terms(self, examples: ChainExamples) -> float:
        """Return the length of the longest sequence, twice: tokens and steps."""
        return 2.0 * float(np.diff(examples.starts).max())

    def hinge_along(
        self, examples: ChainExamples, f: Array, d: Array | None, t: float, p: Array, scaling: Scaling, n_threads: int
    ) -> tuple[float, float, Array]:
        """Return the hinge loss at scores f + t d, its slope along d and its slopes by the scores."""
        slopes = examples.buffers.take()
        value, slope = _core.chain_hinge(
            *self._shape(examples), _labels(examples), p, self.costs.ravel(), self._factor(scaling), f, d, t, slopes,
            n_threads,
        )  # fmt: skip
        return value, slope, slopes

    def log_along(
        self, examples: ChainExamples, f: Array, d: Array | None, t: float, p: Array, n_threads: int
    ) -> tuple[float, float, Array]:
        """Return the log loss at scores f + t d, its slope along d and its slopes by the scores."""
        slopes = examples.buffers.take()
        value, slope = _core.chain_log(*self._shape(examples), _labels(examples), p, f, d, t, slopes, n_threads)
        return value, slope, slopes

    def _shape(self, examples: ChainExamples) -> tuple[Indices, int, bool]:
        return examples.starts, self.n_labels, examples.edges is not None

    def _factor(self, scaling: Scaling) -> float:
        """Return what a wrong label costs where costs multiply, 0 where they are added."""
        if scaling == "margin":
            return 0.0
        if "slack_argmax" in self.lacks:
            raise ValueError(_UNEVEN)
        return self._each

    def widest_feature(self, examples: ChainExamples, p: Array) -> tuple[Array, Indices]:
        """Return the sizes of all attributes with each label, a segment for each attribute and kind of weight."""
        k, row, at, blocks = self.n_labels, examples.row, examples.parts, self.blocks()
        slopes, shares = np.zeros(examples.n_scores), np.repeat(p, np.diff(examples.starts))
        is_step = np.ones(examples.n_tokens, dtype=bool)
        is_step[examples.starts[:-1]] = False
        slopes[at["emissions"]].reshape(-1, row)[:, :k] = shares[:, None]
        slopes[at["transitions"]] = shares[is_step].sum()
        slopes[at["start"]] = slopes[at["end"]] = p.sum()
        if examples.edges is not None:
            slopes[at["pairs"]].reshape(-1, k, row)[:, :, :k] = shares[is_step][:, None, None]
        ends = self.weights.starts
        segments = [ends[:-1][np.diff(ends) > 0]]
        segments += [np.array([block.start]) for name, block in blocks.items() if name != "emissions"]
        segments[-1] = np.arange(blocks["pairs"].start, blocks["pairs"].stop, k * k)
        starts = np.unique(np.concatenate(segments))
        return self._pulled_back(examples, *examples.of_sizes(), slopes, 1), starts[starts < self.dim]

    # Answers.

    def decode(self, examples: ChainExamples, w: Array, n_threads: int) -> list[Labels]:
        """Return the best labels of every sequence."""
        out = np.empty(examples.n_tokens, np.int32)
        _core.chain_best(*self._shape(examples), self.scores(examples, w, n_threads), out, n_threads)
        return examples.split(out)

    def marginals(self, examples: ChainExamples, w: Array, n_threads: int) -> list[Array]:
        """Return the probability of each label at each token, tokens by rows, of every sequence."""
        shares, _ = self._marginals(examples, w, n_threads)
        return examples.split(np.ascontiguousarray(shares[:, : self.n_labels]))

    def _marginals(self, examples: ChainExamples, w: Array, n_threads: int) -> tuple[Array, Array]:
        f = self.scores(examples, w, n_threads)
        out, log_z = np.empty(examples.n_tokens * examples.row), np.empty(len(examples))
        _core.chain_marginals(*self._shape(examples), f, out, log_z, n_threads)
        return out.reshape(-1, examples.row), log_z

    def argmax(self, x: Any, w: Array) -> Labels:
        """Return the best labels of one sequence."""
        return self.decode(self.encode([x]), w, 1)[0]

    def augmented_argmax(self, x: Any, y: Any, w: Array) -> Labels:
        """Return the labels with the largest cost plus score."""
        return self._worst(x, y, w, "margin")

    def slack_argmax(self, x: Any, y: Any, w: Array) -> Labels:
        """Return the labels with the largest cost times (1 + score - score of y)."""
        return self._worst(x, y, w, "slack")

    def _worst(self, x: Any, y: Any, w: Array, scaling: Scaling) -> Labels:
        examples = self.encode([x], [y])
        out, f = np.empty(examples.n_tokens, np.int32), self.scores(examples, w, 1)
        each = self._factor(scaling)
        _core.chain_worst(*self._shape(examples), _labels(examples), self.costs.ravel(), each, f, out, 1)
        return out

    def log_partition(self, x: Any, w: Array) -> tuple[float, Feature]:
        """Return log Z and the expected joint feature."""
        examples = self.encode([x], [np.zeros(_length(x), np.int32)])
        f, ones = self.scores(examples, w, 1), np.ones(1)
        _, log_z = self._marginals(examples, w, 1)
        _, _, slopes = self.log_along(examples, f, None, 0.0, ones, 1)
        expected = self.pulled_back(examples, slopes, 1)
        np.add.at(expected, *self.joint_feature(x, _labels(examples)))
        return float(log_z[0]), expected

    def joint_feature(self, x: Any, y: Any) -> tuple[Indices, Array]:
        """Return phi(x, y) as indices and values."""
        sequence = Sequences.of([x], self.n_attributes)
        return self.weights.joint_feature(sequence, flat_labels([y], sequence, self.n_labels))

    def delta(self, y: Any, other: Any) -> float:
        """Return the sum of the costs of wrong labels."""
        return float(self.costs[np.asarray(y), np.asarray(other)].sum())

    # What w means.

    def blocks(self) -> dict[str, slice]:
        """Return where w has the weights of "emissions", "transitions", "start", "end" and "pairs"."""
        return self.weights.blocks

    def emission_table(self, w: Array) -> tuple[Indices, Indices, Array]:
        """Return the weights of attributes: attribute, label, weight."""
        return *self.weights.emission_pairs(), w[self.blocks()["emissions"]]

    def transition_table(self, w: Array) -> Array:
        """Return the weights of transitions, the label before by rows; 0 for those without."""
        table = np.zeros((self.n_labels, self.n_labels))
        table[self.weights.transitions] = w[self.blocks()["transitions"]]
        return table

    # Tests.

    def outputs(self, x: Any) -> Iterator[Labels]:
        """Return all labelings."""
        return (np.array(y, np.int32) for y in product(range(self.n_labels), repeat=_length(x)))

    @classmethod
    def examples(cls) -> list[StructuredModel]:
        """Return small models: all weights, some of them, costs, steps with attributes."""
        pattern = np.array([0, 1, 3, 3]), np.array([2, 0, 1])
        return [
            cls(3, 2),
            cls(3, 3, emissions=pattern, transitions=np.eye(3, dtype=bool), start_end=False),
            cls(2, 1, costs=[1.0, 2.5]),
            cls(3, 2, costs=[[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [1.0, 3.0, 0.0]], pair_attributes=2),
            cls(5, 1, start_end=False),
        ]

    def draw(self, rng: np.random.Generator, n: int) -> tuple[list[Any], list[Any]]:
        """Draw sequences of one to three tokens."""
        lengths = [int(rng.integers(1, 3 if self.n_labels > 3 else 4)) for _ in range(n)]
        X: list[Any] = [rng.normal(size=(length, self.n_attributes)) for length in lengths]
        if self.pair_attributes:
            X = [(x, rng.normal(size=(len(x), self.pair_attributes))) for x in X]
        return X, [rng.integers(0, self.n_labels, size=length).astype(np.int32) for length in lengths]


def _labels(examples: ChainExamples) -> Labels:
    if examples.y is None:
        raise ValueError("a loss needs labels")
    return examples.y


def _length(x: Any) -> int:
    tokens = x[0] if isinstance(x, tuple) else x
    return int(tokens.shape[0]) if hasattr(tokens, "shape") else len(tokens)
