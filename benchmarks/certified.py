"""What a certificate costs: time to a certified relative accuracy against time to the true one, as a Markdown table.

    python benchmarks/certified.py [solver ...]

Both times are read from one run, so the time to the true accuracy contains the bounds computed on the way. The
optimum is known from `auto` run to 1e-9. Names of any solvers may be given; the quasi-Newton and the stochastic
ones are listed by default. Real data is used where it is present, in the folder that BMRM_DATA names (or
../shared/data).
"""

import os
import sys
from pathlib import Path

import numpy as np

import bmrm
from bmrm.problem import missing
from bmrm.solvers.stochastic import Stochastic

TOL = 1e-3
SECONDS = 240.0
REPEATS, SHORT = 9, 0.5  # so many runs, unless they take longer than so many seconds together
QUASI_NEWTON = ["lbfgs", "subgradient_lbfgs", "subgradient_bfgs", "hybrid", "owlqn", "owlqn_star"]
MOST = 3.0  # times as long may the certificate take


def data_sets():
    folder = Path(os.environ.get("BMRM_DATA", Path(__file__).parents[2] / "shared" / "data"))
    path = folder / "a9a" / "a9a.xz"
    if path.exists():
        data = bmrm.read(path)
        yield "a9a", data.X, data.y
    else:
        print("(a9a is not present: left out)")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 50)) * (rng.random((20000, 50)) < 0.3)
    yield "generated", X, np.where(X @ rng.normal(size=50) + 3.0 * rng.normal(size=20000) > 0.0, 1.0, -1.0)


def run(problem, solver, optimum):
    """The records at which the true and the certified accuracy are reached; None where one is not.

    Of short runs, the one with the median time of the certificate.
    """
    runs = []
    while len(runs) < REPEATS and sum(seconds for seconds, _, _ in runs) < SHORT:
        result = bmrm.solve(problem, solver, tol=TOL, max_seconds=SECONDS)
        true = next((r for r in result.history if r.upper - optimum <= TOL * abs(r.upper)), None)
        runs.append((result.history[-1].seconds, true, result.history[-1] if result.converged else None))
    return sorted(runs, key=lambda found: found[0])[len(runs) // 2][1:]


def row(cells, true, certified):
    start = "| " + " | ".join(cells)
    if true is None or certified is None:
        reached = "-" if true is None else f"{true.seconds:.2f}"
        return f"{start} | {reached} | | | | | not within {SECONDS:g} s |"
    ratio = certified.seconds / true.seconds
    return (
        f"{start} | {true.seconds:.2f} | {certified.seconds:.2f} | {true.passes:g} "
        f"| {certified.passes:g} | {ratio:.1f} | {'met' if ratio <= MOST else 'missed'} |"
    )


def main(names):
    names = names or QUASI_NEWTON + [name for name, cls in bmrm.solvers.SOLVERS.items() if issubclass(cls, Stochastic)]
    print(f"relative accuracy {TOL:g}, one thread; load {os.getloadavg()[0]:.2f}\n")
    print(
        "| data | loss | Omega | lam | solver | true s | certified s | true passes | certified passes | ratio | <= 3 |"
    )
    print("|---|---|---|--:|---|--:|--:|--:|--:|--:|---|")
    for name, X, y in data_sets():
        for loss, regularizer in (("hinge", "l2"), ("logistic", "l2"), ("logistic", "l1")):
            risk = bmrm.LinearRisk(X, y, loss, n_threads=1)
            for lam in (1e-2, 1e-3, 1e-4):
                problem = bmrm.Problem(risk, regularizer, lam)
                optimum = bmrm.solve(problem, tol=1e-9, max_seconds=SECONDS).certificate.upper
                for solver in names:
                    if not missing(bmrm.solvers.get(solver), problem):
                        found = run(problem, solver, optimum)
                        print(row((name, loss, regularizer, f"{lam:g}", solver), *found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
