"""How far out honest runs go, and how long they do not improve: what the owner's guard must allow.

    python benchmarks/guard.py [--solvers bmrm ls_bmrm] [--lams 1e-1 1e-4]

For each solver, over losses, regularizers and lam: the smallest slack with which no w would have been refused, the
longest stretch of answers without an improvement of the best objective announced, and the most answers of a run.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import bmrm
from bmrm.owners import guard as guards
from bmrm.owners import session
from bmrm.problem import missing

LOSSES = ("hinge", "logistic", "squared_hinge", "least_squares", "quantile")
SEEN = {"slack": 0.0, "waited": 0, "answers": 0}


class Measuring(guards.Guard):
    """Refuses nothing, and notes what it would have needed."""

    def before(self, w, best, zero):
        if best is None or zero is None:
            return
        SEEN["answers"] += 1
        if best < self.best - guards._LESS * abs(best):
            self.best, self.waited = best, 0
        SEEN["waited"] = max(SEEN["waited"], self.waited)
        size, level = self.lam * self.regularizer.value(w), zero - self.floor
        power = 0.5 if self.regularizer.name == "l2" else 1.0  # for elastic_net more than is needed
        SEEN["slack"] = max(SEEN["slack"], (size / level) ** power if level > 0.0 else 0.0)


def data(rng, scale):
    X = rng.normal(size=(600, 20)) * np.logspace(0.0, scale, 20)
    return X, X @ rng.normal(size=20) / np.logspace(0.0, scale, 20).max() + rng.normal(size=600)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    solvers = ["bmrm", "ls_bmrm", "lbfgs", "proximal_bundle", "owlqn", "auto"]
    parser.add_argument("--solvers", nargs="*", default=solvers)
    parser.add_argument("--lams", nargs="*", type=float, default=[1e-1, 1e-4])
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-iter", type=int, default=300)
    args = parser.parse_args()
    session.Guard = Measuring
    warnings.simplefilter("ignore")
    print("| solver | runs | least slack | longest wait | most answers |\n|---|--:|--:|--:|--:|")
    for solver in args.solvers:
        worst, runs = {"slack": 0.0, "waited": 0, "answers": 0}, 0
        for loss in LOSSES:
            for scale in (0.0, 2.0):
                X, scores = data(np.random.default_rng(0), scale)
                y = np.sign(scores) if loss in LOSSES[:3] else scores
                for regularizer in ("l2", "l1", "elastic_net"):
                    for lam in args.lams:
                        owners = [bmrm.Owner((X[s::2], y[s::2])) for s in range(2)]
                        SEEN.update(slack=0.0, waited=0, answers=0)
                        with bmrm.OwnersRisk(owners, loss, lam=lam, regularizer=regularizer, intercept=True) as risk:
                            if missing(bmrm.solvers.get(solver), risk.problem):
                                continue
                            bmrm.solve(risk.problem, solver, tol=args.tol, max_iter=args.max_iter)
                        runs += 1
                        worst = {name: max(worst[name], SEEN[name]) for name in worst}
        print(f"| {solver} | {runs} | {worst['slack']:.3g} | {worst['waited']} | {worst['answers']} |", flush=True)


if __name__ == "__main__":
    main()
