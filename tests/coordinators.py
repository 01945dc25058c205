"""Coordinators of another make, who tell each owner what they like."""

from __future__ import annotations

import numpy as np

from bmrm.owners.client import DirectChannel
from bmrm.owners.masks import decoded
from bmrm.owners.wire import Message, packed

TERMS = {
    "loss": "hinge", "loss_parameters": {}, "regularizer": "l2", "regularizer_parameters": {}, "lam": 0.1,
    "n_features": 5, "intercept": False, "classes": [-1.0, 1.0], "positive": 1, "masked": True,
}  # fmt: skip
STEP = 2.0**-30
WANTS = ["value", "subgradient", "offset", "rounding"]


def ask(way, header, *arrays):
    """Send a request and return the answer."""
    way.send(packed(Message(header, arrays)))
    return way.receive()


class Coordinator:
    """Owners in this process, asked one by one, so that each may be told something else.

    Parameters
    ----------
    owners : list of Owner
    lies : dict
        What is told to all owners but the first, by request and name, in the place of what the first is told.
    """

    def __init__(self, owners, **lies):
        self.ways, self.lies = [DirectChannel(owner) for owner in owners], lies
        self.begun, self.rounds = [], 0

    def each(self, method, header, *arrays):
        """Send a request to all, with the lies; return all answers."""
        answers = []
        for place, way in enumerate(self.ways):
            lies = self.lies.get(method, {}) if place else {}
            own = header | {"method": method, "risk": 1}
            own |= {"place": place} if method == "join" else {}
            own |= {name: value for name, value in lies.items() if name not in ("w", "terms")}
            if "terms" in lies:
                own["terms"] = own["terms"] | lies["terms"]
            answers.append(ask(way, own, *([lies["w"]] if "w" in lies else arrays)))
        return answers

    def begin(self, **terms):
        self.begun = [answer.header for answer in self.each("begin", {"terms": TERMS | terms})]
        return self.begun

    def join(self, keys=None):
        many = {"keys": "key", "identities": "identity", "signatures": "signature"}
        keys = keys or {name: [own.get(one, "") for own in self.begun] for name, one in many.items()}
        total = sum(own["mass"] for own in self.begun)
        return self.each("join", keys | {"total": total, "step": STEP})

    def _request(self):
        self.rounds += 1
        return {"gone": [[], []], "best": None, "zero": None, "round": self.rounds}

    def evaluate(self, w, number=1, **announced):
        point = {"number": number, "w": 0, "line": None, "t": 0.0}
        return self.each("ask", self._request() | announced | {"point": point, "wants": WANTS}, w)

    def slide(self, start, end, ts, **announced):
        line = {"number": 9, "end": 0, "start": {"number": start, "w": None, "line": None, "t": 0.0}}
        return self.each("slide", self._request() | announced | {"line": line, "ts": ts}, end)

    def close(self):
        for way in self.ways:
            way.close()


def total(answers):
    """Return the sum of what all have answered, as the coordinator would read it; the words as they are for one."""
    return decoded([answer.arrays[0] for answer in answers], STEP)


def share(X, y, w, part):
    """Return what one owner's part of the sum is, at w, for the hinge."""
    rows, labels = X[part], y[part]
    inside = labels * (rows @ w) < 1.0
    value = np.maximum(0.0, 1.0 - labels * (rows @ w)).sum() / len(y)
    return np.concatenate([[value], -(rows * (labels * inside)[:, None]).sum(axis=0) / len(y)])
