"""PrivateSession: the requests of one coordinator, answered with noise from a budget of privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bmrm.losses import Loss
from bmrm.losses.vector import ClassLoss
from bmrm.owners.guard import Refused
from bmrm.owners.memory import plane_bytes
from bmrm.owners.names import gone, point_name, whole
from bmrm.owners.privacy import Mechanism, Privacy
from bmrm.owners.record import Record
from bmrm.owners.row_bounds import row_bounds
from bmrm.owners.session import Session
from bmrm.owners.terms import Terms
from bmrm.owners.wire import Message
from bmrm.risks.base import Array
from bmrm.risks.shard import Missing, PointName

if TYPE_CHECKING:
    from bmrm.owners.ledger import Ledger
    from bmrm.owners.owner import Owner


class PrivateSession(Session):
    """Answers planes with noise, one for each point, until the budget is spent.

    Nothing else that leaves depends on single rows: the guard, which compares numbers of the owner's own, does not
    look, and steps on a line are refused. A point that is asked for again gets the same plane, at no cost.

    Parameters
    ----------
    owner : Owner
    peer : str
    privacy : Privacy
    ledger : Ledger
    """

    def __init__(self, owner: Owner, peer: str, privacy: Privacy, ledger: Ledger) -> None:
        super().__init__(owner, peer)
        self.privacy, self.ledger = privacy, ledger
        self._mechanisms: dict[int, Mechanism] = {}
        self._planes: dict[tuple[int, int], tuple[Array, float]] = {}  # by risk and point

    def _hello(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        """Tell sizes; whether all sets of labels are of one size depends on single rows."""
        return super()._hello(header, arrays) | {"targets": 1}

    def _classes(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        """Tell the labels, which are public; of targets that are numbers, not even how many there are."""
        if self.privacy.target_bound is not None:
            raise Refused("this owner's targets are numbers, not classes")
        try:
            return super()._classes(header, arrays)
        except Refused:
            raise Refused("this owner's labels are no classes") from None

    def _begin(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        """Make a risk, and say how much noise its planes will have and how many there will be."""
        terms = Terms.from_header(header["terms"])
        if terms.masked:
            raise Refused("this owner answers with noise; ask it without masks")
        self._forget([whole(header["risk"])])  # no risk is ever asked about with the noise of another
        mechanism = self._mechanism(terms)
        left = self.ledger.left(self.privacy.rho, self.privacy.budget)
        if left == 0:
            raise Refused(f"the budget of privacy is spent, after {self.ledger.answers} answers")
        told = super()._begin(header, arrays)
        if self._run(header).dim != mechanism.dim:
            self._forget([whole(header["risk"])])
            raise Refused(f"the loss and the classes of the run do not fit: w would not have {mechanism.dim} numbers")
        self._mechanisms[whole(header["risk"])] = mechanism
        (normal, offset), (normal_off, offset_off) = mechanism.sigmas, mechanism.biases
        noise = {"normal": normal, "offset": offset, "normal_off": normal_off, "offset_off": offset_off}
        return told | {"noise": noise | {"bend": mechanism.bend, "size": mechanism.size, "answers": left}}

    def _mechanism(self, terms: Terms) -> Mechanism:
        """Return the noise for the terms of a run."""
        try:
            loss = terms.made_loss()
            k = len(terms.classes or ()) if isinstance(loss, ClassLoss) else 1
            bounds = row_bounds(loss, k, self.privacy.target_bound)
        except (ValueError, TypeError) as error:  # by names and parameters alone
            raise Refused(str(error)) from None
        dim = (terms.n_features + terms.intercept) * k
        n, settings = self.owner.data.n_examples, self.privacy
        assert settings.answers is not None
        mechanism = Mechanism(bounds, n, settings.row_norm, terms.intercept, dim, settings.rho, settings.answers)
        mechanism.sigmas  # noqa: B018  refuses what has too many numbers
        return mechanism

    def _ask(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> Message:
        run = self._run(header)
        if run.guard is None:
            raise Refused("a run is evaluated after all owners have joined it")
        if header["wants"] != ["subgradient", "offset"]:
            raise Refused("this owner answers planes with noise: a point is asked for its subgradient and offset")
        name = point_name(header["point"], arrays, run.dim)
        risk = whole(header["risk"])
        for point in gone(header["gone"])[0]:
            self._planes.pop((risk, point), None)
        if (risk, name.number) not in self._planes:
            if name.w is None:
                return Message({"missing": "point"})
            kept = 1 + sum(key[0] == risk for key in self._planes)
            self.owner.room.hold((self, risk, "points"), run.point_bytes + kept * plane_bytes(run.dim))
            self._planes[risk, name.number] = self._plane(risk, name.w)
        a, b = self._planes[risk, name.number]
        return Message({}, (np.append(a, b),))

    def _plane(self, risk: int, w: Array) -> tuple[Array, float]:
        """Return a plane with fresh noise; it is paid for before the rows are read."""
        mechanism = self._mechanisms[risk]
        if not mechanism.accepts(w):
            raise Refused(
                f"w has the norm {np.linalg.norm(w):.4g}; with privacy this owner answers up to "
                f"{mechanism.farthest:.4g}"
            )
        self.ledger.spend(self.privacy.rho, self.privacy.budget)
        self.owner.answers += 1
        self.owner.requests += 1
        number = -1  # the shard need not keep the point: the plane is kept
        found = self.shard.ask(risk, PointName(number, w), ("subgradient", "value"), ((number,), ()))
        assert not isinstance(found, Missing)
        a, value = found
        return mechanism.noisy(a, value - float(a @ w))

    def _slide(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> Message:
        raise Refused("this owner answers with noise, and at points only: steps on a line are refused")

    def _forget(self, risks: list[int]) -> None:
        super()._forget(risks)
        for risk in risks:
            self._mechanisms.pop(risk, None)
        self._planes = {key: plane for key, plane in self._planes.items() if key[0] not in risks}

    def _step(self, terms: Terms, loss: Loss, own: float) -> float:
        """Return 0: a step that follows from R_s(0) would tell of single rows; noise has a grid of its own."""
        return 0.0

    def _record(self, terms: Terms, y: Any, floor: float) -> Record:
        """Return a record that stays empty: the budget of privacy holds for all losses together."""
        return Record(self.owner.guard, floor)

    def _gather(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> Message:
        raise Refused("this owner answers with noise: labels and scores of single rows are refused")

    def _scores(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> Message:
        return self._gather(header, arrays)

    def _pull(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> Message:
        return self._gather(header, arrays)

    def _sizes(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> Message:
        return self._gather(header, arrays)

    def _checksum(self, header: dict[str, Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
        raise Refused("this owner answers with noise, and tells no checksum of its rows")
