"""OwnersRisk: the risk of rows that several owners keep to themselves."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmrm._traits import Trait
from bmrm.losses import Loss
from bmrm.losses.vector import VectorLoss
from bmrm.owners.agree import Labels, agreed_labels
from bmrm.owners.client import OwnerLost
from bmrm.owners.connected import Owners
from bmrm.owners.guard import OwnerError
from bmrm.owners.masks import SCALE
from bmrm.owners.noisy import NoisyPoint, announced, check_penalty
from bmrm.owners.owner import Owner
from bmrm.owners.parts import MaskedParts, OwnerParts, OwnersPoint
from bmrm.owners.terms import Terms, check_loss, needs_scores, shape, some_targets
from bmrm.owners.wire import MOST_BYTES
from bmrm.problem import Problem
from bmrm.regularizers import Regularizer, Separable, Zero
from bmrm.regularizers import get as get_regularizer
from bmrm.risks.base import Array
from bmrm.risks.inputs import made_loss, traits_of
from bmrm.risks.remote import RemoteRisk, watch

Memory: TypeAlias = dict[str, Any]
FEWEST_LEFT = 3  # owners that go on without one that is lost: two would know each other's part from the sum


class OwnersRisk(RemoteRisk):
    """R(w) = sum_s c_s R_s(w): each owner s computes its mean loss R_s, and c_s is its share of the rows.

    w goes to the owners, values, subgradients and slopes at trial steps come back. Owners want to know what is
    minimized: so lam and the regularizer belong to this risk, and `problem` is the problem it is for.

    Parameters
    ----------
    owners : Owners, or a sequence of addresses and Owner objects
    loss : Loss or str
        A registered one. Those of all rows together, and those without a lower bound, need scores of single rows: they
        make an `OwnersScoresRisk`, if every owner allows it.
    lam : float
    regularizer : Regularizer or str
        Without bounds.
    intercept : bool
    classes : sequence of labels, optional
        Where the loss is for classes, sets of labels or a hierarchy (the nodes that have rows): asked for by default.
        For `multivariate_regression`, labels whose sets are the numbers to predict, 1 for those of a row, else 0.
    positive : label, optional
        The class against the rest, where the loss has one score; the second of two by default.
    tree : Tree, parents or nested names, optional
        For a hierarchy: the tree of the loss by default, or the labels as paths ``a/b/c`` where the loss is a name.
    masked : bool
        Whether owners mask their answers, so that only sums over all of them can be read here.
    scale : float
        Step of the fixed-point numbers of masked sums, in units of the largest number at w = 0; a power of two.
    checked : bool
        Whether answers of an owner that exclude each other, or change when they are asked for again, are an error
        (`ConvexityCheck`, `Audit`); not possible under masks.
    **connection
        ``tls``, ``insecure`` and ``timeout`` of `Owners`.

    Attributes
    ----------
    best_w : array or None
        The w with the best objective so far.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(-1.0, 1.0, 400).reshape(200, 2)
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> owners = [bmrm.Owner((X[::2], y[::2])), bmrm.Owner((X[1::2], y[1::2]))]
    >>> with bmrm.OwnersRisk(owners, "logistic", lam=0.01, masked=True) as risk:
    ...     bmrm.solve(risk.problem, tol=1e-3).converged
    True
    """

    cheap_lines = True

    parts: OwnerParts
    _seen: tuple[Array, float, float] | None = None

    def __new__(cls, *arguments: Any, **options: Any) -> OwnersRisk:
        """Make the risk that the loss needs."""
        loss = arguments[1] if len(arguments) > 1 else options.get("loss")
        if cls is OwnersRisk and loss is not None and needs_scores(made_loss(loss)):
            from bmrm.owners.gathered import OwnersScoresRisk  # which is an OwnersRisk

            return super().__new__(OwnersScoresRisk)
        return super().__new__(cls)

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
        tree: Any = None,
        masked: bool = False,
        scale: float = SCALE,
        checked: bool = True,
        **connection: Any,
    ) -> None:
        self.loss, self.lam, self.masked = made_loss(loss), float(lam), masked
        check_loss(self.loss)
        self.regularizer = checked_regularizer(get_regularizer(regularizer), masked)
        if not (0.0 < scale <= 1.0 and math.frexp(scale)[0] == 0.5):
            raise ValueError(f"scale must be a power of two, at most 1, got {scale!r}")
        self._own = not isinstance(owners, Owners)
        self.owners = owners if isinstance(owners, Owners) else Owners(owners, **connection)
        by_name = isinstance(loss, str)
        try:
            found = agreed_labels(self.owners, self.loss, classes, positive, tree, by_name)
            self._begin(intercept, found, scale, checked)
        except BaseException:
            self.close()
            raise

    def _begin(self, intercept: bool, labels: Labels, scale: float, checked: bool) -> None:
        if self.masked and len(self.owners.names) < 2:
            raise ValueError("masked sums need at least two owners")
        self.loss, self.classes = labels.loss, labels.classes
        terms = Terms.of(
            self.loss, self.regularizer, lam=self.lam, n_features=self.owners.n_features, intercept=intercept,
            classes=labels.names, positive=labels.positive, masked=self.masked, sets=labels.sets,
        )  # fmt: skip
        self.terms, self.intercept, self.scale = terms, intercept, scale
        self.dim, self.unpenalized = shape(self.loss, terms)
        if 8 * self.dim > MOST_BYTES:
            raise OwnerError(
                f"{self.owners.widest}: has {self.owners.n_features} features, so that w would have {self.dim} "
                f"numbers; at most {MOST_BYTES // 8} are possible"
            )
        self.floor = self.loss.floor
        vectors = isinstance(self.loss, VectorLoss) and self.loss.compiled(some_targets(self.loss, terms)) is not None
        self.traits = traits_of(self.loss, self.loss.kernel() is not None, vectors, streamed=True)
        self._bound = self.regularizer.bind(self.dim, self.unpenalized)
        self._agreed = terms, scale, checked
        self._start(terms, scale, checked)

    def _start(self, terms: Terms, scale: float, checked: bool) -> None:
        """Let the owners begin a run, with new keys under masks, and evaluate w = 0."""
        placed = self.owners.placed
        self.best_w: Array | None = None
        self._session, self._seen = secrets.token_hex(8), None
        self.parts = MaskedParts(placed, terms, self.dim, scale) if self.masked else OwnerParts(placed, terms, self.dim)
        self.planes_noise = announced(self.parts.begun, self.owners.names, self.parts.c)
        if self.planes_noise is not None:
            self._with_noise()
            return
        if checked and not self.masked:
            watch(self, self.parts, self.owners.names, self.parts.coarse)
        self.parts.watchers.append(self._note)
        self.at_zero = self.touch(np.zeros(self.dim))
        for name, (_, value) in zip(self.owners.names, self.at_zero.find("value")[0]):
            if not np.isfinite(value):
                raise OwnerError(f"{name}: its mean loss at w = 0 is {value}; expected a finite number")
        self.parts.zero = self.parts.best = self.at_zero.value
        if isinstance(self.parts, MaskedParts):
            self.noise = 2.0 * self.parts.error
        self.parts.charge(self, self._bound, self.lam)

    def _with_noise(self) -> None:
        """Take planes with noise: they cost the owners' budgets, so none is asked for here, and none is checked."""
        self.unpenalized, self.cheap_lines, self.touched = (), False, ("subgradient", "offset")
        self._bound = self.regularizer.bind(self.dim)
        check_penalty(self._bound)
        self.traits = frozenset({Trait.NOISE})

    def go_on_without(self, lost: OwnerLost) -> None:
        """Begin again for the rows of the other owners, at least three of them; what was known of R is void.

        Parameters
        ----------
        lost : OwnerLost
            Says which owners are lost; the other connections must be good.
        """
        names, left = ", ".join(lost.names), [name for name in self.owners.names if name not in lost.names]
        if len(left) < FEWEST_LEFT:
            raise OwnerError(
                f"{lost}; {len(left)} other owners would remain, and a run goes on with at least {FEWEST_LEFT}: start "
                f"again without {names}"
            ) from lost
        warnings.warn(
            f"{names} is lost: the run goes on for the {len(left)} owners that remain, with another objective (the "
            f"mean over their rows)",
            UserWarning,
            stacklevel=3,
        )
        placed = self.owners.placed
        placed.later("drop", (self.parts.number,))
        self.owners.leave(lost.names)
        self._start(*self._agreed)

    def _note(self, w: Array, found: dict[str, list[tuple[float, Any]]], shards: list[int]) -> None:
        """Keep the best objective, which the owners are told, and the last w with what was told of it."""
        if self.parts.best is None or "value" not in found:
            return
        value = float(sum(c * own for c, own in found["value"]))
        objective = self.lam * self._bound.value(w) + value
        if not np.isfinite(objective):
            return
        if objective <= self.parts.best or self.best_w is None:
            self.parts.best, self.best_w = min(self.parts.best, float(objective)), w.copy()
        if "rounding" in found:
            self._seen = w.copy(), value, float(sum(c * own for c, own in found["rounding"]))

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

    def inexact(self, w: Array) -> float:
        """Return how much a rounded value or plane may be too high at w."""
        return 2.0 * self.noise + self.parts.coarse(w)

    @property
    def memory(self) -> Memory | None:
        """The last w with its value, and how much larger R(w) may be: it must be the same when a run goes on."""
        if self._seen is None:
            return None
        w, value, rounding = self._seen
        return {"session": self._session, "w": w, "value": value, "rounding": rounding}

    def forget(self, memory: Memory | None = None) -> None:
        """Go on after a run of another session: the owners must still say the same at its last w.

        The best objective is not taken over: an owner's guard has not seen the w that it belongs to in this session.
        """
        from bmrm.owners.resume import check_resumed  # which needs this class

        if memory is not None and memory.get("session") != self._session:
            check_resumed(self, memory)

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


def checked_regularizer(regularizer: Regularizer, masked: bool) -> Regularizer:
    """Return the regularizer, if owners can be told of it."""
    if isinstance(regularizer, Separable) and regularizer.bounds is not None:
        raise ValueError("owners are told of no bounds on w; take a regularizer without")
    if masked and isinstance(regularizer, Zero):
        raise ValueError("masked sums need a regularizer: without one nothing bounds w, nor the rounding of the sums")
    return regularizer
