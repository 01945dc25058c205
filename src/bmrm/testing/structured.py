"""What every structured model must satisfy, by brute force on tiny examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bmrm.losses.structured import StructuredHinge, StructuredLog
from bmrm.risks.structured import StructuredRisk
from bmrm.structured.base import Array, Feature, StructuredModel, as_pair
from bmrm.testing._assertions import magnitude, require, require_close, require_unchanged
from bmrm.testing.risks import check_risk

_ROUNDING = 1e-9


def check_structured_model(
    model: StructuredModel, X: Sequence[Any], y: Sequence[Any], rng: np.random.Generator | None = None
) -> None:
    """Check a model's answers against all outputs of a few examples, as `outputs` enumerates them.

    `argmax`, `augmented_argmax`, `slack_argmax` and `log_partition` are compared with the best, the worst and the sum
    of all outputs, as far as the model has them; then the risks of both losses are held to `check_risk`.

    Parameters
    ----------
    model : StructuredModel
        With `outputs`.
    X, y : sequences
        Inputs with so few outputs that they can all be looked at, and their true outputs.
    rng : numpy.random.Generator, optional
        For the weights; always the same by default.

    Raises
    ------
    AssertionError
        With a sentence that says what is violated, at which example, and by how much.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> model = bmrm.ChainModel(n_labels=2, n_attributes=1)
    >>> bmrm.testing.check_structured_model(model, [np.array([[1.0], [-1.0]])], [[0, 1]])
    """
    rng = np.random.default_rng(0) if rng is None else rng
    examples = [(x, true, list(model.outputs(x))) for x, true in zip(X, y)]
    for scale in (0.0, 0.3, 3.0):
        w = scale * rng.normal(size=model.dim)
        for i, (x, true, outputs) in enumerate(examples):
            require(len(outputs) > 0, f"example {i}: outputs(x) is empty")
            _Example(model, i, x, true, outputs, w).check()
    for has, loss in (("augmented_argmax", StructuredHinge(model)), ("log_partition", StructuredLog(model))):
        if _has(model, has):
            check_risk(StructuredRisk(X, y, loss, n_threads=1), rng)
    if _has(model, "slack_argmax"):
        check_risk(StructuredRisk(X, y, StructuredHinge(model, "slack"), n_threads=1), rng)


class _Example:
    """One example with all of its outputs at one w."""

    def __init__(self, model: StructuredModel, i: int, x: Any, y: Any, outputs: list[Any], w: Array) -> None:
        self.model, self.i, self.x, self.y, self.outputs, self.w = model, i, x, y, outputs, w
        self.features = np.array([dense(model.joint_feature(x, other), model.dim) for other in outputs])
        self.scores = self.features @ w
        self.costs = np.array([model.delta(y, other) for other in outputs])
        self.own = float(dense(model.joint_feature(x, y), model.dim) @ w)
        self.slack = _ROUNDING * float(magnitude(np.abs(self.features).max() * np.abs(w).sum()))

    def check(self) -> None:
        """Compare every answer of the model with the enumeration."""
        model, x, w = self.model, self.x, self.w
        require(bool((self.costs >= 0.0).all()), f"example {self.i}: delta(y, y') is negative for some output")
        require(model.delta(self.y, self.y) == 0.0, f"example {self.i}: delta(y, y) is not 0")
        kept = w.copy()
        self._attains("argmax", model.argmax(x, w), lambda score, cost: score)
        if _has(model, "augmented_argmax"):
            self._attains(
                "augmented_argmax", model.augmented_argmax(x, self.y, w), lambda score, cost: cost + score - self.own
            )
        if _has(model, "slack_argmax"):
            self._attains(
                "slack_argmax", model.slack_argmax(x, self.y, w), lambda score, cost: cost * (1.0 + score - self.own)
            )
        if _has(model, "log_partition"):
            self._check_partition()
        require_unchanged(kept, w, "w")

    def _attains(self, method: str, answer: Any, value: Any) -> None:
        """Require that the answer is as good as the best of all outputs."""
        score = float(dense(self.model.joint_feature(self.x, answer), self.model.dim) @ self.w)
        got = float(value(score, self.model.delta(self.y, answer)))
        best = float(np.max(value(self.scores, self.costs)))
        require_close(got, best, self.slack, f"example {self.i}: {method} does not attain the maximum over all outputs")

    def _check_partition(self) -> None:
        value, expected = self.model.log_partition(self.x, self.w)
        top = float(self.scores.max())
        shares = np.exp(self.scores - top)
        slack = self.slack * len(self.outputs)
        require_close(
            value, top + np.log(shares.sum()), slack, f"example {self.i}: log_partition is not the log of the sum"
        )
        require_close(
            dense(expected, self.model.dim),
            shares / shares.sum() @ self.features,
            slack * float(magnitude(np.abs(self.features).max())),
            f"example {self.i}: log_partition does not return the expected joint feature",
        )


def dense(feature: Feature, dim: int) -> Array:
    """Return a joint feature as a vector of length dim."""
    indices, values = as_pair(feature, dim)
    vector = np.zeros(dim)
    np.add.at(vector, indices, values)
    return vector


def _has(model: StructuredModel, method: str) -> bool:
    return method not in model.lacks and getattr(type(model), method) is not getattr(StructuredModel, method)
