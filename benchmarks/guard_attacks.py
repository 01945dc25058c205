"""How many rows leave an owner under its guard, for each attack.

    python benchmarks/guard_attacks.py [--rows 1000] [--columns 10] [--losses hinge logistic] [--open] [--attacks ...]

An attacker is the only coordinator of one owner. It asks what it likes until the owner refuses, then looks for rows in
all that was told: each subgradient, each difference of two of them, and each sum and difference of two such steps
between neighbors. A row counts as recovered if one of these vectors has its direction, with a relative error of at most
1e-3. ``--open`` shows the same attacks without the guard.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from scipy.spatial import cKDTree

import bmrm
from bmrm.owners import GuardSettings, Refused
from bmrm.owners.client import DirectChannel
from bmrm.owners.wire import Message, packed

ERROR = 1e-3  # relative, of a row that counts as recovered
MOST = 1000  # subgradients whose differences are all looked at
OPEN = {"budget": 20000, "patience": 10**9}
OPEN |= {"repeats": 0, "resolution": 0.0, "per_line": 10**9, "changed": 0.0, "coarse": 0.0}


class Asker:
    """A coordinator of another make, which announces what pleases the owner."""

    def __init__(self, owner, dim, loss="hinge", total=1e12):
        self.owner, self.dim, self.loss, self.total = owner, dim, loss, total
        self.way, self.runs, self.points, self.said = DirectChannel(owner), 0, 0, []
        self.begin(0.01)

    def send(self, header, *arrays):
        self.way.send(packed(Message(header, arrays)))
        answer = self.way.receive()
        if "refused" in answer.header:
            raise Refused(answer.header["refused"])
        return answer

    def begin(self, lam):
        """Start a run with a lam of its own."""
        self.runs += 1
        terms = {
            "loss": self.loss, "loss_parameters": {}, "regularizer": "l2", "regularizer_parameters": {}, "lam": lam,
            "n_features": self.dim, "intercept": False, "classes": [-1.0, 1.0], "positive": 1, "masked": False,
        }  # fmt: skip
        self.send({"method": "begin", "risk": self.runs, "terms": terms})
        join = {"method": "join", "risk": self.runs, "keys": None, "step": None, "place": 0, "total": self.total}
        self.send(join)
        self.first = True
        self.ask(np.zeros(self.dim))

    def header(self, method):
        """Return a request that announces progress of 1e-9 with each one."""
        self.points += 1
        best, self.first = (None if self.first else 1.0 - 1e-9 * self.points), False
        header = {"method": method, "risk": self.runs, "best": best, "zero": None if best is None else 1.0}
        return header | {"gone": [[], []], "round": self.points}

    def ask(self, w):
        """Return the subgradient and the offset at w."""
        request = self.header("ask")
        point = {"number": self.points, "w": 0, "line": None, "t": 0.0}
        request |= {"gone": [[self.points - 1], []], "point": point, "wants": ["subgradient", "offset"]}
        numbers = self.send(request, np.asarray(w, dtype=np.float64)).arrays[0]
        self.said.append(numbers[:-1])
        return numbers[:-1], numbers[-1]

    def slide(self, start, end, ts):
        """Return value and slopes at the steps of a line."""
        request = self.header("slide")
        point = {"number": 2 * 10**6 + self.points, "w": 0, "line": None, "t": 0.0}
        line = {"number": 10**6 + self.points, "start": point, "end": 1}
        request |= {"gone": [[point["number"] - 1], [line["number"] - 1]], "line": line, "ts": list(map(float, ts))}
        return self.send(request, start, end).arrays[0].reshape(-1, 3)


def bisected(asker, at, low, high, tiny):
    """Split an interval of a line until one row lies between its ends; yield after each answer."""
    stack = [(low, asker.ask(at(low)), high, asker.ask(at(high)))]
    while stack:
        low, (a, b), high, (c, d) = stack.pop()
        yield
        few = not (a - c).any() or abs(b - d) * asker.rows < 1.5
        if few or high - low < tiny:
            continue
        middle = 0.5 * (low + high)
        found = asker.ask(at(middle))
        stack += [(low, (a, b), middle, found), (middle, found, high, (c, d))]


def bisection(asker, rng):
    """Bisect the kinks on one line after the other."""
    while True:
        along = rng.normal(size=asker.dim)
        along *= 10.0 / np.linalg.norm(along)
        yield from bisected(asker, lambda t, along=along: t * along, 0.0, 1.0, 1e-12)


def trials(asker, rng):
    """Find kinks by trials on a line, which cost three numbers each, then ask on both sides."""
    while True:
        along = rng.normal(size=asker.dim)
        along *= 10.0 / np.linalg.norm(along)
        start = np.zeros(asker.dim)
        low, high = 0.0, 1.0
        for _ in range(12):
            ts = np.linspace(low, high, 9)
            slopes = asker.slide(start, along, ts)[:, 1]
            k = int(np.argmax(np.abs(np.diff(slopes)) > 1e-12))
            low, high = ts[k], ts[k + 1]
            yield
        asker.ask(low * along)
        asker.ask(high * along)
        yield


def neighbors(asker, rng):
    """Ask at pairs of w that are close: at first so close that no row changes, then farther apart."""
    while True:
        w, d = rng.normal(size=(2, asker.dim))
        a, b = asker.ask(w)
        for far in np.geomspace(1e-7, 1e-1, 14):
            c, e = asker.ask(w + far * d / np.linalg.norm(d))
            yield
            if abs(b - e) * asker.rows > 0.5 or (asker.loss != "hinge" and np.linalg.norm(a - c) > 1e-3):
                break


def one_hot(asker, rng):
    """Bisect along the axes, one coordinate at a time."""
    for j in itertools.cycle(range(asker.dim)):
        far = rng.uniform(5.0, 12.0)
        yield from bisected(asker, lambda t, j=j, far=far: far * t * np.eye(asker.dim)[j], -1.0, 1.0, 1e-12)


def lams(asker, rng):
    """Bisect, with another lam after each ten answers, which takes a new session."""
    for k, _ in enumerate(bisection(asker, rng)):
        if k % 10 == 9:
            asker.way.close()
            asker.way = DirectChannel(asker.owner)
            asker.begin(10.0 ** rng.uniform(-3.0, -1.0))
        yield


def descent(asker, rng):
    """Walk down the owner's own objective as a solver does, with a probe close by after each step."""
    w = np.zeros(asker.dim)
    for k in itertools.count():
        a, _ = asker.ask(w)
        d = rng.normal(size=asker.dim)
        asker.ask(w + 10.0 ** rng.uniform(-5.0, -1.5) * d / np.linalg.norm(d))
        w = w - (a + 0.01 * w) * 3.0 / np.sqrt(1.0 + k)
        yield


def few_active(asker, rng):
    """Descend, then ask far out along the w found, where few rows are active, and around it."""
    w = np.zeros(asker.dim)
    for _ in range(40):
        a, _ = asker.ask(w)
        w = w - (a + 0.001 * w)
        yield
    while True:
        d = rng.normal(size=asker.dim)
        asker.ask(rng.uniform(1.0, 60.0) / np.linalg.norm(w) * (w + 0.3 * np.linalg.norm(w) * d / np.linalg.norm(d)))
        yield


ATTACKS = {each.__name__: each for each in (bisection, trials, neighbors, one_hot, lams, descent, few_active)}


def recovered(X, said):
    """Return how many rows of X have the direction of something that was told."""
    said = np.asarray(said)
    said = said[np.append(True, (np.diff(said, axis=0) != 0.0).any(axis=1))][:MOST]
    steps = np.diff(said, axis=0)
    first, second = np.triu_indices(len(said), 1)
    pairs = np.triu_indices(len(steps), 1)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    tree, found = cKDTree(rows), set()
    sums = (steps[pairs[0]] + steps[pairs[1]], steps[pairs[0]] - steps[pairs[1]])
    for vectors in (said, said[first] - said[second], *sums):
        sizes = np.linalg.norm(vectors, axis=1)
        vectors = vectors[sizes > 0.0] / sizes[sizes > 0.0, None]
        for sign in (1.0, -1.0):
            near, which = tree.query(sign * vectors, distance_upper_bound=ERROR) if len(vectors) else ([], [])
            found |= {int(row) for distance, row in zip(near, which) if np.isfinite(distance)}
    return len(found)


def data(rng, m, d):
    """Return rows whose classes overlap."""
    X = rng.normal(size=(m, d))
    return X, np.where(X @ rng.normal(size=d) + rng.normal(size=m) > 0.0, 1.0, -1.0)


def run(name, loss="hinge", m=1000, d=10, guard=None, most=10**9, seed=0):
    """Attack an owner; return how many rows leave, how many answers it gave and why it stopped."""
    X, y = data(np.random.default_rng(seed), m, d)
    owner = bmrm.Owner((X, y), "victim", **({} if guard is None else {"guard": guard}))
    asker = Asker(owner, d, loss)
    asker.rows = m
    why, attack = "", ATTACKS[name](asker, np.random.default_rng(seed + 1))
    try:
        for _ in itertools.islice(attack, most):
            pass
    except Refused as error:
        why = str(error)
    asker.way.close()
    return recovered(X, asker.said), owner.answers, asker.points, why


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--losses", nargs="*", default=["hinge", "squared_hinge", "logistic"])
    parser.add_argument("--attacks", nargs="*", default=list(ATTACKS))
    parser.add_argument("--most", type=int, default=10**9, help="requests of an attack")
    parser.add_argument("--open", action="store_true", help="without the guard")
    args = parser.parse_args()
    guard = GuardSettings(**OPEN) if args.open else GuardSettings()
    print("| attack | loss | rows that leave | new answers | requests | s | stopped |\n|---|---|--:|--:|--:|--:|---|")
    for name in args.attacks:
        for loss in args.losses:
            began = time.perf_counter()
            rows, answers, requests, why = run(name, loss, args.rows, args.columns, guard, args.most)
            took = time.perf_counter() - began
            print(f"| {name} | {loss} | {rows} | {answers} | {requests} | {took:.0f} | {why[:60]} |", flush=True)


if __name__ == "__main__":
    main()
