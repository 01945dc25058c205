"""What a structured model is: joint features, a cost, and the three questions that losses ask about them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm._registry import Registry

Array: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]
Feature: TypeAlias = Array | tuple[Indices, Array]
Scaling: TypeAlias = Literal["margin", "slack"]

MODELS: Registry[StructuredModel] = Registry("structured model")


class StructuredModel(ABC):
    """Outputs y for inputs x, scored by <w, phi(x, y)>: sequences, matchings, foldings, or what a user likes.

    A model of one's own needs `dim`, `joint_feature`, `delta` and `argmax`; `augmented_argmax` for
    `structured_hinge`, `log_partition` for `structured_log`. It holds no data and no weights. Methods are called
    from several threads at once.

    Attributes
    ----------
    dim : int
        Length of w and of phi(x, y).
    lacks : mapping
        Methods that the class has, but this instance with its settings has not, and why.

    Examples
    --------
    A classifier of numbers with three classes, in a few lines:

    >>> import numpy as np, bmrm
    >>> class Three(bmrm.StructuredModel):
    ...     dim = 6
    ...     def joint_feature(self, x, y):
    ...         return np.kron(np.eye(3)[y], [x, 1.0])
    ...     def delta(self, y, other):
    ...         return float(y != other)
    ...     def argmax(self, x, w):
    ...         return int(np.argmax(w.reshape(3, 2) @ [x, 1.0]))
    ...     def augmented_argmax(self, x, y, w):
    ...         return int(np.argmax(w.reshape(3, 2) @ [x, 1.0] + (np.arange(3) != y)))
    ...     def outputs(self, x):
    ...         return range(3)
    >>> bmrm.testing.check_structured_model(Three(), [-1.0, 0.5], [0, 2])
    >>> risk = bmrm.StructuredRisk([-1.0, 0.5, 0.0, 2.0], [0, 2, 1, 2], bmrm.losses.StructuredHinge(Three()))
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.1)).converged
    True
    """

    name: ClassVar[str] = ""
    dim: int
    lacks: Mapping[str, str] = MappingProxyType({})

    def __init_subclass__(cls, name: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            cls.name = name
            MODELS[name] = cls

    @abstractmethod
    def joint_feature(self, x: Any, y: Any) -> Feature:
        """Return phi(x, y): a vector of length `dim`, or its indices and values (indices may repeat: they add up)."""

    @abstractmethod
    def delta(self, y: Any, other: Any) -> float:
        """Return the cost, at least 0, of predicting other where y is true; 0 where they are equal."""

    @abstractmethod
    def argmax(self, x: Any, w: Array) -> Any:
        """Return an output with the largest <w, phi(x, y)>."""

    def augmented_argmax(self, x: Any, y: Any, w: Array) -> Any:
        """Return an output y' with the largest delta(y, y') + <w, phi(x, y')>."""
        raise self._lacks("augmented_argmax(x, y, w)", "structured_hinge")

    def slack_argmax(self, x: Any, y: Any, w: Array) -> Any:
        """Return an output y' with the largest delta(y, y') (1 + <w, phi(x, y') - phi(x, y)>)."""
        raise self._lacks("slack_argmax(x, y, w)", "structured_hinge with scaling='slack'")

    def log_partition(self, x: Any, w: Array) -> tuple[float, Feature]:
        """Return log sum_y exp <w, phi(x, y)> and its gradient, the expected joint feature."""
        raise self._lacks("log_partition(x, w)", "structured_log")

    def outputs(self, x: Any) -> Iterable[Any]:
        """Return all outputs for x: for tests by brute force, with tiny x."""
        raise self._lacks("outputs(x)", "a check by brute force")

    def check(self, x: Any, y: Any) -> None:
        """Raise ValueError, in words that fit after "example 3: ", if y is no output for x."""
        return None

    def encode(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> Any:
        """Check the examples and turn them into what the other methods take, one at a time."""
        return Examples(self, X, Y)

    @classmethod
    def examples(cls) -> list[StructuredModel]:
        """Return instances worth testing; none by default."""
        return []

    def draw(self, rng: np.random.Generator, n: int) -> tuple[list[Any], list[Any]]:
        """Draw n tiny inputs and outputs, with few enough outputs to enumerate them."""
        raise self._lacks("draw(rng, n)", "tests by discovery")

    def _lacks(self, method: str, reader: str) -> TypeError:
        return TypeError(f"model {type(self).__name__} has no {method}, which {reader} needs")


class BatchedModel(StructuredModel):
    """A model that answers for all examples at once, in compiled code."""

    @abstractmethod
    def encode(self, X: Any, Y: Any = None) -> Any:
        """Check the examples and gather them in the form that the batched methods take; `len` counts them."""

    @abstractmethod
    def hinge(self, examples: Any, w: Array, p: Array, scaling: Scaling, n_threads: int) -> tuple[float, Array]:
        """Return sum_i p_i max_y' (...) and one subgradient."""

    @abstractmethod
    def log(self, examples: Any, w: Array, p: Array, n_threads: int) -> tuple[float, Array]:
        """Return sum_i p_i (log partition - score) and its gradient."""

    @abstractmethod
    def decode(self, examples: Any, w: Array, n_threads: int) -> list[Any]:
        """Return the argmax of every example."""

    @abstractmethod
    def total_feature(self, examples: Any, p: Array) -> Array:
        """Return sum_i p_i |phi(x_i, y_i)|, the sizes of the joint features of the true outputs."""


class ScoredModel(BatchedModel):
    """A batched model whose losses see w through scores f = A w only, as many numbers as the model likes.

    What is known of f at w and in a direction is then known on the whole line: a search along it costs no product
    with A.
    """

    @abstractmethod
    def scores(self, examples: Any, w: Array, n_threads: int) -> Array:
        """Return A w, flat."""

    @abstractmethod
    def pulled_back(self, examples: Any, slopes: Array, n_threads: int) -> Array:
        """Return A' slopes."""

    def room(self, examples: Any, n: int) -> Array:
        """Return an array for n scores, uninitialized; one whose memory is used again may be faster."""
        return np.empty(n)

    @abstractmethod
    def widest_feature(self, examples: Any, p: Array) -> tuple[Array, Indices]:
        """Return sizes a >= 0, as long as w, and where segments of w begin: what the scores of any outputs are made of.

        sum_i p_i <|phi(x_i, y_i)|, |w|> is at most the sum over segments of the largest a_j |w_j|, for all outputs y_i.
        """

    def total_feature(self, examples: Any, p: Array) -> Array:
        """Return the sizes of `widest_feature`, which are at least those of the true outputs."""
        return self.widest_feature(examples, p)[0]

    @abstractmethod
    def most_terms(self, examples: Any) -> float:
        """Return how many scores of one example are added up at most."""

    @abstractmethod
    def hinge_along(
        self, examples: Any, f: Array, d: Array | None, t: float, p: Array, scaling: Scaling, n_threads: int
    ) -> tuple[float, float, Array]:
        """Return the hinge loss at scores f + t d, its slope in direction d (0 without one), and its slopes by f."""

    @abstractmethod
    def log_along(
        self, examples: Any, f: Array, d: Array | None, t: float, p: Array, n_threads: int
    ) -> tuple[float, float, Array]:
        """Return the same of the log loss."""

    def hinge(self, examples: Any, w: Array, p: Array, scaling: Scaling, n_threads: int) -> tuple[float, Array]:
        """Return sum_i p_i max_y' (...) and one subgradient."""
        f = self.scores(examples, w, n_threads)
        value, _, slopes = self.hinge_along(examples, f, None, 0.0, p, scaling, n_threads)
        return value, self.pulled_back(examples, slopes, n_threads)

    def log(self, examples: Any, w: Array, p: Array, n_threads: int) -> tuple[float, Array]:
        """Return sum_i p_i (log partition - score) and its gradient."""
        f = self.scores(examples, w, n_threads)
        value, _, slopes = self.log_along(examples, f, None, 0.0, p, n_threads)
        return value, self.pulled_back(examples, slopes, n_threads)


class Examples:
    """Inputs with their outputs, checked: what a model without a batched form is asked about, one after the other.

    Parameters
    ----------
    model : StructuredModel
    X : sequence
    Y : sequence, optional
        As long as X; None where outputs are to be predicted.
    """

    def __init__(self, model: StructuredModel, X: Sequence[Any], Y: Sequence[Any] | None = None) -> None:
        self.X, self.Y = X, Y
        if len(X) == 0:
            raise ValueError("there are no examples")
        if Y is None:
            return
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} examples and y has {len(Y)}")
        for i, (x, y) in enumerate(zip(X, Y)):
            try:
                model.check(x, y)
            except ValueError as error:
                raise ValueError(f"example {i}: {error}") from None

    def check_again(self) -> None:
        """Raise ValueError if arrays of the caller are not any more what was checked; here none are kept."""

    def __len__(self) -> int:
        return len(self.X)


def as_pair(feature: Feature, dim: int) -> tuple[Indices, Array]:
    """Return a joint feature as indices and values; one of a wrong shape or outside of w raises ValueError."""
    if isinstance(feature, tuple):
        indices, values = np.asarray(feature[0], dtype=np.int64), np.asarray(feature[1], dtype=np.float64)
        if indices.shape != values.shape or indices.ndim != 1:
            raise ValueError(
                f"indices of shape {indices.shape} and values of shape {values.shape} are no joint feature"
            )
        if indices.size and not 0 <= indices.min() <= indices.max() < dim:
            raise ValueError(f"a joint feature has index {indices.max()}, but w has length {dim}")
    else:
        dense = np.asarray(feature, dtype=np.float64)
        if dense.shape != (dim,):
            raise ValueError(f"a joint feature has shape {dense.shape}, expected ({dim},)")
        indices = np.flatnonzero(dense)
        values = dense[indices]
    if not np.isfinite(values).all():
        raise ValueError("a joint feature is not finite")
    return indices, values


def inner(feature: Feature, w: Array) -> float:
    """Return <phi, w>."""
    if isinstance(feature, tuple):
        return float(np.dot(feature[1], w[feature[0]]))
    return float(np.dot(feature, w))
