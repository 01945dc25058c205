"""The hunt: it finds what is false, whatever that is, and nothing where all is well; its numbers are exact."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import time
import warnings
from fractions import Fraction

import numpy as np
import pytest

import bmrm
from bmrm._traits import Trait
from bmrm.certificate import Certificate
from bmrm.losses import LOSSES, VectorLoss
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS
from bmrm.testing import hunt, hunt_case, hunt_judge
from bmrm.testing.hunt_draw import Case, StructuredCase, drawn
from bmrm.testing.hunt_exact import Objective
from bmrm.testing.hunt_formulas import TERMS
from bmrm.testing.hunt_judge import Judge
from bmrm.testing.hunt_numbers import Overflow, exact_dot, exp, integers, log, log_sum_exp

SEED = 5
EXAMPLES = [loss for cls in LOSSES.values() for loss in cls.examples()]


# Numbers.


def test_products_are_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 7)) * 10.0 ** rng.uniform(-12, 12, size=7)
    W = rng.normal(size=(7, 2)) * 1e5
    expected = [[sum(Fraction(x) * Fraction(w) for x, w in zip(row, W[:, c])) for c in range(2)] for row in X]
    assert exact_dot(integers(X), W) == expected


def test_integers_of_nothing_and_of_extremes():
    for values in (np.zeros((2, 3)), np.array([5e-324, 1.7e308, 0.0, -1.0])):
        n, e = integers(values)
        assert [Fraction(int(k)) * Fraction(2) ** e for k in n.reshape(-1)] == [Fraction(v) for v in values.reshape(-1)]


def test_exponentials_and_logarithms():
    assert float(exp(Fraction(1))) == math.e
    assert float(log(Fraction(10))) == math.log(10.0)
    assert abs(log(exp(Fraction(3, 7))) - Fraction(3, 7)) < Fraction(1, 10**45)
    assert float(log_sum_exp([Fraction(0), Fraction(-800)]) * 10**350) == pytest.approx(
        math.exp(-800 + 350 * math.log(10))
    )
    with pytest.raises(Overflow):
        exp(Fraction(3000))


# Formulas.


def case_of(loss) -> Case:
    """Return a drawn problem with that loss."""
    for number in range(3000):
        case = drawn(SEED, number)
        if isinstance(case, Case) and case.loss == loss:
            return case
    raise AssertionError(f"{loss} is never drawn")


@pytest.mark.parametrize("loss", EXAMPLES, ids=str)
def test_formulas_are_those_of_the_losses(loss):
    rng = np.random.default_rng(1)
    m = 12 if loss.couples == "group" else 20
    y, groups = loss.draw(rng, m)
    groups = None if groups is None else np.arange(m) // 4
    if groups is not None:
        y[::4], y[1::4] = 0.0, 2.0
    weight = {"row": rng.uniform(0.1, 1.0, size=m), "group": np.repeat([1.0, 2.0, 0.5], 4)[:m]}.get(loss.weighted_by)
    X = rng.normal(size=(m, 3))
    offset = None if isinstance(loss, VectorLoss) else rng.normal(size=m)
    common = {"lam": 0.1, "regularizer": "l2", "options": {}, "start": "zero", "n_threads": 1, "weight": weight}
    case = Case(**common, loss=loss, X=X, y=y, groups=groups, offset=offset)
    problem = case.problem()
    objective = Objective(case, problem)
    for size in (0.0, 0.3, 2.0):
        w = size * rng.normal(size=problem.risk.dim)
        value, slack = objective.at(w)
        assert float(value) == pytest.approx(problem.objective(w), rel=1e-12, abs=1e-14)
        assert 0 < slack < 1e-14 * (1 + abs(value)) or value == 0


def test_every_registered_loss_has_a_formula():
    assert set(TERMS) == set(LOSSES)


@pytest.mark.parametrize("regularizer", [r for cls in REGULARIZERS.values() for r in cls.examples(4)])
def test_regularizers_are_exact(regularizer):
    from bmrm.testing.hunt_exact import omega

    w = np.array([0.1, -0.04, 0.0, 0.2])
    assert float(omega(regularizer, w)) == pytest.approx(regularizer.value(w), rel=1e-14)
    outside = omega(regularizer, np.full(4, 5.0))
    assert (outside is None) == (regularizer.value(np.full(4, 5.0)) == np.inf)


def test_structured_problems_are_exact():
    cases = [case for number in range(400) if isinstance(case := drawn(SEED, number), StructuredCase)]
    assert len({type(case.loss) for case in cases}) == 2
    for case in cases[:8]:
        problem = case.problem()
        w = problem.regularizer.clip(np.random.default_rng(2).normal(size=problem.risk.dim))
        assert float(Objective(case, problem).at(w)[0]) == pytest.approx(problem.objective(w), rel=1e-9)


# Drawing.


def test_everything_registered_is_drawn():
    cases = [drawn(SEED, number) for number in range(600)]
    rows = [case for case in cases if isinstance(case, Case)]
    assert {case.loss.name for case in rows} == set(LOSSES)
    assert {case.regularizer.name for case in rows} == set(REGULARIZERS)
    assert {case.layout for case in rows} == {"dense64", "dense32", "fortran", "csr32", "csr64", "csr of float32"}
    assert min(case.lam for case in rows) < 1e-15
    assert max(case.lam for case in rows) > 1e4
    found: set[str] = set()
    for number in range(500):
        with contextlib.suppress(ValueError):  # a risk without a lower bound, say, and l1
            found |= set(hunt_case(SEED, number).solvers())
    assert found == {name for name, solver in SOLVERS.items() if Trait.NOISE not in solver.needs}


def test_a_number_is_always_the_same_problem():
    one, two = hunt_case(SEED, 7), hunt_case(SEED, 7)
    assert str(one) == str(two)
    assert one.solvers() == two.solvers()
    assert one.solve("auto").certificate.lower <= two.solve("auto").certificate.upper


def test_a_loss_of_ones_own_is_drawn_and_judged():
    class Cube(bmrm.losses.Loss, name="hunted"):
        floor = 0.0

        def evaluate(self, scores, targets, weight):
            r = np.abs(scores - targets)
            return float(weight @ r**3) / 3.0, weight * r * (scores - targets)

    try:
        case = next(c for n in range(600) if getattr((c := drawn(SEED, n)).loss, "name", "") == "hunted")
        problem = case.problem()
        w = problem.regularizer.clip(np.zeros(problem.risk.dim))
        assert float(Objective(case, problem).at(w)[0]) == pytest.approx(problem.objective(w))
    finally:
        del LOSSES["hunted"]


# Judging: each kind of finding is found.


class Wrong:
    """A solver that lies, in the place of `auto`."""

    def __init__(self, monkeypatch, lie) -> None:
        def solve(problem, name, **options):
            return lie(bmrm.solve(problem, name, **options)) if name == "auto" else bmrm.solve(problem, name, **options)

        monkeypatch.setattr(hunt_judge, "solve", solve)

    @staticmethod
    def found(number: int = 3) -> set[str]:
        judge = Judge(SEED, number)
        judge.run(lambda solver, case: None)
        return {finding.kind for finding in judge.findings if finding.solver == "auto"}


def with_bounds(result, upper=None, lower=None, **changes):
    from dataclasses import replace

    upper = result.certificate.upper if upper is None else upper
    lower = result.certificate.lower if lower is None else lower
    return replace(result, certificate=Certificate(upper, lower, upper - lower, "a lie"), **changes)


def raises(result):
    raise RuntimeError("no answer")


def warns(result):
    warnings.warn("overflow encountered", RuntimeWarning, stacklevel=1)
    return result


def prints(result):
    subprocess.run(["echo", "a line"], check=True)
    return result


def dawdles(result):
    ends = time.process_time() + 1.7
    while time.process_time() < ends:
        pass
    return result


LIES = {
    "lower above J": lambda r: with_bounds(
        r, upper=2 * abs(r.certificate.upper) + 1, lower=abs(r.certificate.upper) + 1
    ),
    "upper below J": lambda r: with_bounds(r, -abs(r.certificate.upper) - 1.0, -np.inf),
    "open gap": lambda r: with_bounds(r, lower=r.certificate.upper - 1.0, status=bmrm.Status.CONVERGED),
    "contradiction": lambda r: with_bounds(r, lower=r.certificate.upper * (1 + 1e-15) + 1e-300),
    "outside": lambda r: with_bounds(r, w=r.w * np.nan),
    "crash": raises,
    "warning": warns,
    "output": prints,
    "overrun": dawdles,
}


@pytest.mark.parametrize("kind", LIES)
def test_what_must_not_be_is_found(kind: str, monkeypatch):
    Wrong(monkeypatch, LIES[kind])
    assert kind in Wrong.found()


def test_nothing_is_found_where_all_is_well():
    assert Wrong.found() == set()


# Processes.

HANGS = """
import os, sys, time
import bmrm
from bmrm.testing import hunt, hunt_judge, hunt_run

class Bad(bmrm.solvers.Solver, name="auto"):
    def steps(self, problem, start):
        {what}
        yield

hunt_run._HANG = 3.0
if __name__ == "__main__":
    report = hunt(minutes=5, seed=5, first=3, problems=1, processes=1, show=None)
    print([(finding.kind, finding.solver) for finding in report.findings])
"""


@pytest.mark.parametrize(("what", "kind"), [("time.sleep(60)", "hang"), ("os.abort()", "crash")])
def test_hangs_and_crashes_of_the_process_are_found(what: str, kind: str, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(HANGS.format(what=what))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == f"[('{kind}', 'auto')]"


def test_a_short_hunt():
    report = hunt(minutes=5, seed=SEED, problems=8, show=None)
    assert report.problems + report.refused == 8
    assert report.solves >= report.problems
    assert [str(finding) for finding in report.findings] == []
    assert "found: nothing" in str(report)


def test_the_command_ends_with_1_where_something_was_found(monkeypatch, capsys):
    from bmrm.testing import __main__ as command

    finding = hunt_judge.Finding("hang", 0, 1, "auto", "a case", "details")
    for findings, code in (([], 0), ([finding], 1)):
        monkeypatch.setattr(command, "hunt", lambda f=findings, **options: bmrm.testing.Report(0, 1, 1, findings=f))
        monkeypatch.setattr(sys, "argv", ["hunt", "--minutes", "1"])
        assert command.main() == code
        assert "1 problems" in capsys.readouterr().out
