"""One of three owners returns wrong numbers from its second evaluation on: how often is it caught, and named?

    python benchmarks/liars.py [--runs 100]

Written is, for each kind of lie, in how many of the runs an error named that owner, and after how many of its
answers. Losses and solvers take turns. The liar makes its plane touch its value, so that no answer contradicts itself.
"""

import argparse
import itertools
from contextlib import contextmanager

import numpy as np

import bmrm
from bmrm.owners import OwnerError
from bmrm.owners.session import Session
from bmrm.owners.wire import Message
from bmrm.risks.liars import LiarError

# Guards that answer all, in exact numbers: runs go on to a tolerance of 1e-5.
OPEN = bmrm.owners.GuardSettings(budget=10**6, patience=10**6, resolution=0.0, per_line=10**6, changed=0.0, coarse=0.0)
KINDS = ("sign flip", "noise 10%", "noise 50%", "NaN", "stale w", "honest")
RUNS = list(itertools.product(("hinge", "logistic", "squared_hinge", "least_squares"), ("bmrm", "ls_bmrm", "lbfgs")))


class LyingSession(Session):
    """Answers the first evaluation as it is, and lies from then on."""

    kind, rng = "honest", np.random.default_rng(0)
    answers, last = 0, None

    def _ask(self, header, arrays):
        message = super()._ask(header, arrays)
        if "subgradient" not in header["wants"]:
            return message
        self.answers += 1
        point = self.shard._risks[header["risk"]].points[header["point"]["number"]]
        value, a = point.value, point.subgradient.copy()
        if self.answers > 1:
            value, a = self._lie(value, a)
        else:
            self.last = value, a
        if "value" not in header["wants"]:  # it was told before
            value = point.value
        said = {"value": [value], "subgradient": a, "offset": [value - a @ point.w], "rounding": [0.0]}
        return Message(message.header, (np.concatenate([said[want] for want in header["wants"]]),))

    def _lie(self, value, a):
        if self.kind == "sign flip":
            return value, -a
        if self.kind == "NaN":
            return value, np.full_like(a, np.nan)
        if self.kind == "stale w":
            stale, self.last = self.last, (value, a)
            return stale
        if self.kind.startswith("noise"):
            noise = self.rng.normal(size=a.size)
            size = float(self.kind.split()[1].rstrip("%")) / 100.0
            return value, a + size * np.linalg.norm(a) * noise / np.linalg.norm(noise)
        return value, a


class LyingOwner(bmrm.Owner):
    """An owner that lies in one way."""

    def __init__(self, data, kind, seed):
        super().__init__(data, "the liar", guard=OPEN)
        self.kind, self.seed = kind, seed

    @contextmanager
    def session(self, peer):
        lying = LyingSession(self, peer)
        lying.kind, lying.rng = self.kind, np.random.default_rng(self.seed)
        self.lying = lying
        try:
            yield lying
        finally:
            lying.end()


def run(kind, seed):
    """Return after how many answers the liar was named; None if it was not."""
    loss, solver = RUNS[seed % len(RUNS)]
    solver = "ls_bmrm" if loss == "hinge" and solver == "lbfgs" else solver
    rng = np.random.default_rng(seed)
    d = int(rng.integers(5, 60))
    X = rng.normal(size=(600, d))
    scores = X @ rng.normal(size=d) + rng.normal(size=600)
    y = scores if loss == "least_squares" else np.sign(scores)
    liar = LyingOwner((X[2::3], y[2::3]), kind, seed)
    owners = [bmrm.Owner((X[s::3], y[s::3]), f"owner {s}", guard=OPEN) for s in range(2)] + [liar]
    with bmrm.OwnersRisk(owners, loss, lam=10.0 ** rng.uniform(-4, -1), intercept=bool(seed % 2)) as risk:
        try:
            bmrm.solve(risk.problem, solver, tol=1e-5, max_iter=100)
        except (LiarError, OwnerError) as error:  # the latter for numbers that are not finite
            if not str(error).startswith("the liar:"):
                raise
            return liar.lying.answers
        except ValueError as error:
            if "lower bound" not in str(error):  # that the bounds exclude each other names nobody
                raise
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    args = parser.parse_args()
    print("| lie | runs | named | in the median after answers | at most |\n|---|--:|--:|--:|--:|")
    for kind in KINDS:
        found = [run(kind, seed) for seed in range(args.runs)]
        named = [answers for answers in found if answers is not None]
        when = f"{np.median(named):g} | {max(named)}" if named else "- | -"
        print(f"| {kind} | {len(found)} | {len(named)} | {when} |", flush=True)


if __name__ == "__main__":
    main()
