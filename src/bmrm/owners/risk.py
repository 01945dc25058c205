"""OwnersRisk: the risk of rows that several owners keep to themselves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from bmrm._traits import Trait
from bmrm.losses import Loss
from bmrm.losses.vector import ClassLoss
from bmrm.owners.client import OwnersPlaced, connected
from bmrm.owners.columns import agreed
from bmrm.owners.guard import OwnerError
from bmrm.owners.masks import SCALE
from bmrm.owners.noisy import NoisyPoint, announced, check_penalty
from bmrm.owners.owner import Owner
from bmrm.owners.parts import MaskedParts, OwnerParts, OwnersPoint
from bmrm.owners.terms import Terms, check_loss, each_class_once, labels_union, shape
from bmrm.owners.tls import TLS
from bmrm.problem import Problem
from bmrm.regularizers import Regularizer, Separable, Zero
from bmrm.regularizers import get as get_regularizer
from bmrm.risks.base import Array
from bmrm.risks.inputs import made_loss, traits_of
from bmrm.risks.remote import RemoteRisk, watch


class Owners:
    """Connections to owners, who agree on a version and a number of features.

    Parameters
    ----------
    owners : sequence of str or Owner
        Addresses host:port, or owners in this process.
    tls : TLS, optional
        What owners' certificates must be signed by, and the coordinator's own certificate.
    insecure : bool
        Accept other machines without TLS.
    timeout : float
        Seconds to wait for an answer.

    Attributes
    ----------
    names : list of str
    feature_names : tuple of str, or None
        The names of the columns, which owners must agree about.
    n_features, n_rows : int

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(-1.0, 1.0, 200).reshape(100, 2)
    >>> with bmrm.owners.Owners([bmrm.Owner((X, np.where(X[:, 0] > 0, "a", "b")))]) as owners:
    ...     owners.n_rows, owners.classes.tolist()
    (100, ['a', 'b'])
    """

    def __init__(
        self,
        owners: Sequence[str | Owner],
        tls: TLS | None = None,
        insecure: bool = False,
        timeout: float = 600.0,
    ) -> None:
        if isinstance(owners, (str, Owner)) or not owners:
            raise ValueError(f"owners must be a list of addresses host:port or Owner objects, got {owners!r}")
        repeated = [owner for k, owner in enumerate(owners) if owner in owners[:k]]
        if repeated:
            raise ValueError(f"owner {getattr(repeated[0], 'name', repeated[0])} is given twice")
        self.placed = OwnersPlaced(connected(owners, tls, insecure, timeout))
        self.names = self.placed.workers()
        try:
            self._agree()
        except BaseException:
            self.close()
            raise

    def _agree(self) -> None:
        from bmrm import __version__

        found = self.placed.call("hello")
        for name, answer in zip(self.names, found):
            if answer.get("version") != __version__:
                raise OwnerError(f"{name}: has version {answer.get('version')} of bmrm, but this process {__version__}")
        self.feature_names = agreed(found, self.names)
        features = [int(answer["features"]) for answer in found]
        self.n_features, self.n_rows = max(features), sum(int(answer["rows"]) for answer in found)
        if min(features) < max(features):
            warnings.warn(
                f"the owners have {min(features)} ({self.names[features.index(min(features))]}) to {max(features)} "
                f"features; taken as {max(features)}",
                UserWarning,
                stacklevel=3,
            )

    @cached_property
    def classes(self) -> npt.NDArray[Any]:
        """The labels of all owners, sorted; owners tell them where they are classes."""
        return labels_union([answer["labels"] for answer in self.placed.call("classes")], self.names)

    def close(self) -> None:
        """End all connections."""
        self.placed.release()

    def __enter__(self) -> Owners:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class OwnersRisk(RemoteRisk):
    """R(w) = sum_s c_s R_s(w): each owner s computes its mean loss R_s, and c_s is its share of the rows.

    w goes to the owners, values, subgradients and slopes at trial steps come back. Owners want to know what is
    minimized: so lam and the regularizer belong to this risk, and `problem` is the problem it is for.

    Parameters
    ----------
    owners : Owners, or a sequence of addresses and Owner objects
    loss : Loss or str
        A registered one, of rows or queries: losses of all rows together need the scores of single rows.
    lam : float
    regularizer : Regularizer or str
        Without bounds.
    intercept : bool
    classes : sequence of labels, optional
        Where the loss is for classes: asked for by default.
    positive : label, optional
        The class against the rest, where the loss has one score; the second of two by default.
    masked : bool
        Whether owners mask their answers, so that only sums over all of them can be read here.
    scale : float
        Step of the fixed-point numbers of masked sums, in units of the largest number at w = 0; a power of two.
    checked : bool
        Whether answers of an owner that exclude each other, or change when they are asked for again, are an error
        (`ConvexityCheck`, `Audit`); not possible under masks.
    **connection
        ``tls``, ``insecure`` and ``timeout`` of `Owners`.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(-1.0, 1.0, 400).reshape(200, 2)
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> owners = [bmrm.Owner((X[::2], y[::2])), bmrm.Owner((X[1::2], y[1::2]))]
    >>> with bmrm.OwnersRisk(owners, "hinge", lam=0.01, masked=True) as risk:
    ...     bmrm.solve(risk.problem, tol=1e-6).converged
    True
    """

    cheap_lines = True

    parts: OwnerParts

    def __init__(
        self,
        owners: Owners | Sequence[str | Owner],
        loss: Loss | str,
        *,
        lam: float,
        regularizer: Regularizer | str = "l2",
        intercept: bool = False,
        classes: npt.ArrayLike | None = None,
        positive: Any = None,
        masked: bool = False,
        scale: float = SCALE,
        checked: bool = True,
        **connection: Any,
    ) -> None:
        self.loss, self.lam, self.masked = made_loss(loss), float(lam), masked
        check_loss(self.loss)
        self.regularizer = _checked_regularizer(get_regularizer(regularizer), masked)
        if not (0.0 < scale <= 1.0 and math.frexp(scale)[0] == 0.5):
            raise ValueError(f"scale must be a power of two, at most 1, got {scale!r}")
        self._own = not isinstance(owners, Owners)
        self.owners = owners if isinstance(owners, Owners) else Owners(owners, **connection)
        try:
            self._begin(intercept, classes, positive, scale, checked)
        except BaseException:
            self.close()
            raise

    def _begin(self, intercept: bool, classes: Any, positive: Any, scale: float, checked: bool) -> None:
        if self.masked and len(self.owners.names) < 2:
            raise ValueError("masked sums need at least two owners")
        labels, place = self._labels(classes, positive)
        if isinstance(self.loss, ClassLoss) and self.loss.n_classes is None:
            self.loss = replace(self.loss, n_classes=len(labels or ()))  # type: ignore[type-var]
        terms = Terms.of(
            self.loss, self.regularizer, lam=self.lam, n_features=self.owners.n_features, intercept=intercept,
            classes=labels, positive=place, masked=self.masked,
        )  # fmt: skip
        self.dim, self.unpenalized = shape(self.loss, terms)
        self.floor = self.loss.floor
        vectors = (
            isinstance(self.loss, ClassLoss) and self.loss.compiled(each_class_once(len(labels or ()))) is not None
        )
        self.traits = traits_of(self.loss, self.loss.kernel() is not None, vectors, streamed=True)
        self._bound = self.regularizer.bind(self.dim, self.unpenalized)
        placed = self.owners.placed
        self.parts = MaskedParts(placed, terms, self.dim, scale) if self.masked else OwnerParts(placed, terms, self.dim)
        self.planes_noise = announced(self.parts.begun, self.owners.names, self.parts.c)
        if self.planes_noise is not None:
            self._with_noise()
            return
        if checked and not self.masked:
            watch(self, self.parts, self.owners.names)
        self.parts.watchers.append(self._note)
        self.parts.zero = self.parts.best = self.at(np.zeros(self.dim)).value
        if isinstance(self.parts, MaskedParts):
            self.noise = 2.0 * self.parts.error
            self.parts.charge(self, self._bound, self.lam)

    def _with_noise(self) -> None:
        """Take planes with noise: they cost the owners' budgets, so none is asked for here, and none is checked."""
        self.unpenalized, self.cheap_lines, self.touched = (), False, ("subgradient", "offset")
        self._bound = self.regularizer.bind(self.dim)
        check_penalty(self._bound)
        self.traits = frozenset({Trait.NOISE})

    def _labels(self, classes: Any, positive: Any) -> tuple[list[Any] | None, int | None]:
        """Return the classes and the place of the positive one, where the loss is for classes."""
        if self.loss.task != "classification":
            return None, None
        self.classes = np.unique(np.asarray(classes)) if classes is not None else self.owners.classes
        labels: list[Any] = self.classes.tolist()
        if len(labels) < 2:
            raise OwnerError(f"all labels of {', '.join(self.owners.names)} are {labels}; at least two are needed")
        if isinstance(self.loss, ClassLoss):
            return labels, None
        if positive is None and len(labels) > 2:
            raise ValueError(
                f"the owners have {len(labels)} classes and loss '{self.loss.name}' is for two: take a loss of all "
                f"classes (softmax, multiclass_hinge), or say which is the positive one"
            )
        chosen = labels[1] if positive is None else positive
        if chosen not in labels:
            raise ValueError(f"positive is {chosen!r}, which is not one of the classes {labels}")
        return labels, labels.index(chosen)

    def _note(self, w: Array, found: dict[str, list[tuple[float, Any]]], shards: list[int]) -> None:
        """Keep the best objective, which the owners are told."""
        if self.parts.best is not None and "value" in found:
            objective = self.lam * self._bound.value(w) + sum(c * value for c, value in found["value"])
            if np.isfinite(objective):
                self.parts.best = min(self.parts.best, float(objective))

    @property
    def problem(self) -> Problem:
        """The problem that the owners were told of."""
        return Problem(self, self.regularizer, self.lam)

    def at(self, w: Array, remembered: Any = None) -> OwnersPoint:
        """Return w; the owners are asked when something about it is."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        if w.shape != (self.dim,):
            raise ValueError(f"w has shape {w.shape}, expected ({self.dim},)")
        return (OwnersPoint if self.planes_noise is None else NoisyPoint)(self, self.parts, w)

    def close(self) -> None:
        """End the connections, if this risk has made them."""
        if self._own:
            self.owners.close()

    def __enter__(self) -> OwnersRisk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _checked_regularizer(regularizer: Regularizer, masked: bool) -> Regularizer:
    if isinstance(regularizer, Separable) and regularizer.bounds is not None:
        raise ValueError("owners are told of no bounds on w; take a regularizer without")
    if masked and isinstance(regularizer, Zero):
        raise ValueError("masked sums need a regularizer: without one nothing bounds w, nor the rounding of the sums")
    return regularizer
