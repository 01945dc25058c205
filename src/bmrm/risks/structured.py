"""StructuredRisk: the mean loss of a structured model over examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm import _core
from bmrm._traits import Trait
from bmrm.data.matrix import checked_threads
from bmrm.losses.structured import StructuredHinge, StructuredLog, StructuredLoss
from bmrm.risks.base import Array, Point, Risk
from bmrm.risks.fingerprint import fingerprint
from bmrm.risks.inputs import normalized
from bmrm.risks.normal_error import UNIT, KnownError, roundings
from bmrm.risks.scored import Loss, Scored, ScoredPoint
from bmrm.risks.worst_outputs import LIE, OracleError, Rows, WorstOutputs, in_parallel
from bmrm.structured.base import BatchedModel, ScoredModel, StructuredModel, as_pair

_EPS = float(np.finfo(np.float64).eps)
_REMEMBERED = 10

Oracle = Callable[[Array], tuple[float, Array]]


class StructuredRisk(Risk):
    """R(w) = sum_i p_i l(x_i, y_i, w), the p_i being weights that add up to 1, equal by default.

    Parameters
    ----------
    X : sequence
        Inputs, as the model takes them.
    y : sequence
        Outputs, as many.
    loss : StructuredHinge or StructuredLog
        With the model.
    weight : array-like, optional
        One for each example, at least 0.
    n_threads : int, optional
        All cores by default, or for -1 (all but one for -2).
    remember : int, optional
        For a structured hinge without a compiled batched form: how many of the last worst outputs of each example are
        kept. They make planes that cost no call of the model; values and what is called converged come from the model
        alone. 10 by default.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> model = bmrm.ChainModel(n_labels=2, n_attributes=1)
    >>> X, y = [np.array([[1.0], [-1.0]]), np.array([[-2.0]])], [[0, 1], [1]]
    >>> risk = bmrm.StructuredRisk(X, y, bmrm.losses.StructuredLog(model))
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.1)).converged
    True
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: StructuredLoss,
        weight: npt.ArrayLike | None = None,
        n_threads: int | None = None,
        remember: int | None = None,
    ) -> None:
        if not isinstance(loss, StructuredLoss):
            raise TypeError(f"loss must be a StructuredHinge or a StructuredLog, got {loss!r}")
        self.loss, self.model, self.traits, self.floor = loss, loss.model, loss.traits, loss.floor
        self.n_threads = checked_threads(n_threads)
        self.examples = self.model.encode(X, y)
        self.dim = self.model.dim
        m = len(self.examples)
        self.p = np.full(m, 1.0 / m) if weight is None else normalized(weight, m, "example")
        self._worst: WorstOutputs | None = None
        self._scored: Scored | None = None
        self._oracle, self._sizes = self._made(_REMEMBERED if remember is None else remember)

    def _made(self, remember: int) -> tuple[Oracle, Array]:
        """Return the oracle, and the mean sizes of the true outputs' joint features."""
        loss, model, examples, p, n_threads = self.loss, self.model, self.examples, self.p, self.n_threads
        if isinstance(model, BatchedModel):
            if isinstance(model, ScoredModel):
                widest = model.widest_feature(examples, p)
                self._scored, sizes = self._made_scored(model, widest), widest[0]
                self.traits |= {Trait.CACHED_LINE}
                self.cheap_lines = True
            else:
                sizes = model.total_feature(examples, p)
            if isinstance(loss, StructuredHinge):
                scaling = loss.scaling
                return lambda w: model.hinge(examples, w, p, scaling, n_threads), sizes
            return lambda w: model.log(examples, w, p, n_threads), sizes
        if isinstance(loss, StructuredHinge):
            self._worst = WorstOutputs(model, examples, loss.scaling, n_threads, remember)
            return self._hinge, _added(self._worst.truths, p, self.dim)
        assert isinstance(loss, StructuredLog)
        truths = [as_pair(model.joint_feature(x, y), self.dim) for x, y in zip(examples.X, examples.Y)]
        return lambda w: self._log(truths, w), _added(truths, p, self.dim)

    def _made_scored(self, model: ScoredModel, widest: tuple[Array, npt.NDArray[np.int64]]) -> Scored:
        loss, examples, p, n_threads = self.loss, self.examples, self.p, self.n_threads

        def along(f: Array, d: Array | None, t: float) -> Loss:
            if isinstance(loss, StructuredHinge):
                return model.hinge_along(examples, f, d, t, p, loss.scaling, n_threads)
            return model.log_along(examples, f, d, t, p, n_threads)

        return Scored(
            self,
            lambda w: model.scores(examples, w, n_threads),
            lambda slopes: model.pulled_back(examples, slopes, n_threads),
            along,
            lambda n: model.room(examples, n),
            widest,
            model.most_terms(examples),
        )

    @property
    def n_examples(self) -> int:
        """The number of examples."""
        return len(self.p)

    def evaluate(self, w: Array) -> tuple[float, Array]:
        """Ask the model about every example."""
        self.products += 2
        return self._oracle(w)

    def _hinge(self, w: Array) -> tuple[float, Array]:
        assert self._worst is not None
        found = self._worst.find(w)
        return float(self.p @ found.at(w)), np.asarray(found.rows.T @ self.p)

    def _log(self, truths: list[Any], w: Array) -> tuple[float, Array]:
        model, X = self.model, self.examples.X

        def one(i: int) -> tuple[float, Any]:
            value, expected = model.log_partition(X[i], w.copy())
            own = float(truths[i][1] @ w[truths[i][0]])
            size = sum(float(np.abs(v) @ np.abs(w[j])) for j, v in (truths[i], as_pair(expected, self.dim)))
            if not value - own >= -LIE * (1.0 + abs(value) + size):
                raise OracleError(
                    f"example {i}: the log partition of {type(model).__name__} is {value:.6g}, less than the score "
                    f"{own:.6g} of the true output alone"
                )
            return value - own, as_pair(expected, self.dim)

        found = in_parallel(one, len(X), self.n_threads)
        gradient = np.zeros(self.dim)
        for share, (_, expected), truth in zip(self.p, found, truths):
            np.add.at(gradient, expected[0], share * expected[1])
            np.subtract.at(gradient, truth[0], share * truth[1])
        return float(self.p @ [value for value, _ in found]), gradient

    @property
    def normal_error(self) -> KnownError:
        """That of sums over the examples, as large as those of the true outputs' features twice."""
        return KnownError(2.0 * UNIT * roundings(len(self.p)) * self._sizes)

    def known_plane(self, w: Array) -> tuple[Array, float] | None:
        """Return the plane of remembered outputs that is highest at w, which costs no call of the model."""
        if self._worst is None:
            return None
        found = self._worst.plane(w, self.p)
        if found is None:
            return None
        a, b = found
        return a, b - 4.0 * _EPS * (abs(b) + _core.inner_of_sizes(a, w) + _core.inner_of_sizes(self._sizes, w))

    @property
    def memory(self) -> tuple[Rows, ...] | None:
        """The remembered outputs."""
        return None if self._worst is None else tuple(self._worst.blocks)

    def forget(self, memory: tuple[Rows, ...] | None = None) -> None:
        """Forget the outputs of the last run, but for those given."""
        super().forget()
        self.examples.check_again()
        if self._worst is not None:
            self._worst.blocks.clear()
            self._worst.blocks.extend(memory or ())

    def at(self, w: Array, remembered: Any = None) -> Point:
        """Return w with what the model says there."""
        if self._scored is not None:
            return ScoredPoint(self._scored, w, self._scored.scores(w) if remembered is None else remembered)
        point = _StructuredPoint(self, w)
        point._pair = remembered
        return point

    @property
    def sizes_of_truths(self) -> Array:
        """sum_i p_i |phi(x_i, y_i)|."""
        return self._sizes


@fingerprint.register
def _(risk: StructuredRisk) -> dict[str, Any]:
    about = {"loss": risk.loss.name, "model": type(risk.model).__name__, "examples": len(risk.examples)}
    found = about | fingerprint.dispatch(Risk)(risk)
    risk.forget()
    return found


class _StructuredPoint(Point):
    """A point whose rounding is that of the scores, which may be much larger than the loss.

    With T = sum_i p_i |phi(x_i, y_i)|, those of the true outputs are of size <T, |w|>, those of the outputs that make
    the subgradient a of size <T + |a|, |w|> at most.
    """

    @property
    def rounding(self) -> float:
        risk = self.risk
        assert isinstance(risk, StructuredRisk)
        truths = _core.inner_of_sizes(risk.sizes_of_truths, self.w)
        return 8.0 * _EPS * (abs(self.value) + 2.0 * truths + _core.inner_of_sizes(self.subgradient, self.w))

    @property
    def plane(self) -> tuple[Array, float]:
        a, b = super().plane
        return a, b - self.rounding

    @property
    def remembered(self) -> tuple[float, Array]:
        return self._evaluated()


def _added(features: list[Any], p: Array, dim: int) -> Array:
    total = np.zeros(dim)
    for share, (indices, values) in zip(p, features):
        np.add.at(total, indices, share * np.abs(values))
    return total


def predicted(model: StructuredModel, X: Any, w: Array, n_threads: int) -> list[Any]:
    """Return the best output of every input."""
    examples = model.encode(X)
    if isinstance(model, BatchedModel):
        return model.decode(examples, w, n_threads)
    return in_parallel(lambda i: model.argmax(examples.X[i], w.copy()), len(examples), n_threads)
