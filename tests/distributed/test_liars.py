"""Workers that return wrong numbers are named, honest ones never; lies that fit together are not found."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from catalogue import all_losses, sample_for
from parties import parties, rows

import bmrm
from bmrm import OwnersRisk, Problem, Shards, solve
from bmrm.risks import linear_risk
from bmrm.risks.liars import Audit, ConvexityCheck, LiarError

_spec = importlib.util.spec_from_file_location("liars", Path(__file__).parents[2] / "benchmarks" / "liars.py")
liars = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(liars)


@pytest.mark.parametrize("kind", [kind for kind in liars.KINDS if kind != "honest"])
def test_owners_that_lie_are_named(kind):
    named = [liars.run(kind, seed) for seed in range(12)]
    assert sum(answers is not None for answers in named) >= 11
    assert all(answers >= 2 for answers in named if answers is not None)


def test_honest_owners_are_not():
    assert [liars.run("honest", seed) for seed in range(12)] == [None] * 12


@pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.couples != "all"], ids=repr)
def test_honest_shards_of_every_loss(loss):
    X, y, groups = sample_for(loss)
    half = np.arange(len(X)) < len(X) // 2 if groups is None else groups <= np.median(groups) - 0.5
    order = np.concatenate([np.flatnonzero(half), np.flatnonzero(~half)])
    X, y, groups = (None if c is None else c[order] for c in (X, y, groups))
    shards = Shards.from_arrays([(X[: half.sum()],), (X[half.sum() :],)])
    risk = linear_risk(shards, y, loss, groups=groups, checked=True)
    assert len(risk.parts.watchers) == 2
    solve(Problem(risk, "l2", 0.01), "ls_bmrm", tol=1e-8, max_iter=100)


def test_a_shard_of_an_engine(rng):
    X, y = rows(rng)
    shards = Shards.from_arrays([(X[:100], y[:100]), (X[100:], y[100:])])
    risk = linear_risk(shards, y, "logistic", checked=True)
    shard = shards.placed._objects[1]
    ask = shard.ask

    def lying(number, name, wants, *rest):
        found = ask(number, name, wants, *rest)
        return [-part if want == "subgradient" else part for want, part in zip(wants, found)]

    risk.evaluate(np.zeros(5))
    shard.ask = lying
    with pytest.raises(LiarError, match=r"shard 1 \(worker here\): its answer"):
        solve(Problem(risk, "l2", 0.01), "ls_bmrm")


def test_values_on_lines_are_checked(rng):
    X, y = rows(rng)
    shards = Shards.from_arrays([(X[:100], y[:100]), (X[100:], y[100:])])
    risk = linear_risk(shards, y, "hinge", checked=True)
    line = risk.touch(np.zeros(5)).toward(np.ones(5))
    shard = shards.placed._objects[0]
    slide = shard.slide
    shard.slide = lambda *given: [(value - 5.0, left, right) for value, left, right in slide(*given)]
    with pytest.raises(LiarError, match="shard 0"):
        line.evaluate(0.5)


def test_lies_that_fit_together_are_not_found(rng):
    """The answers of other data are those of a convex risk: nobody can tell."""
    X, y = rows(rng)
    others = [*parties(X, y)[:2], bmrm.Owner((X[2::3], -y[2::3]), "consistent", min_rows=10)]
    with OwnersRisk(others, "hinge", lam=0.1) as risk:
        assert solve(risk.problem, tol=1e-5).converged


def answer(value, a, offset=None):
    found = {"value": [(1.0, value)], "subgradient": [(1.0, np.array([a]))]}
    return found if offset is None else found | {"offset": [(1.0, offset)]}


@pytest.mark.parametrize(
    ("w", "found", "says"),
    [
        (1.0, answer(np.nan, 0.0), "one: its answer 2 has numbers that are not finite"),
        (1.0, answer(0.5, np.inf), "one: its answer 2 has numbers that are not finite"),
        (1.0, answer(-0.5, 0.0), "value -0.5, but the loss is never below 0"),
        (1.0, answer(-np.inf, 0.0), "not finite"),
        (1.0, answer(0.2, 0.0, 0.7), "contradicts itself: the offset of its plane is 0.7"),
        (1.0, answer(0.5, 0.0), r"answers 1 and 2 exclude each other: by answer 1 .* at least 0\.9 where answer 2"),
        (1.0, answer(0.95, -0.3), r"answers 1 and 2 exclude each other: by answer 2 .* at least 1\.25 where answer 1"),
    ],
)
def test_what_no_convex_risk_says(w, found, says):
    check = ConvexityCheck(["one"], 0.0)
    check(np.zeros(1), answer(1.0, -0.1), [0])
    with pytest.raises(LiarError, match=says):
        check(np.array([w]), found, [0])


def test_what_a_convex_risk_may_say():
    check = ConvexityCheck(["one"], 0.0)
    for w in np.random.default_rng(0).normal(size=200) * 3.0:
        check(np.array([w]), answer(w * w, 2.0 * w, -w * w), [0])
    check(np.array([1e200]), answer(np.inf, np.inf), [0])


def test_an_audit_asks_twice_the_same():
    asked = []

    def ask(w):
        asked.append(w.copy())
        return answer(1.0, 1.0 if len(asked) < 6 else 1.1)

    audit = Audit(ask, ["one"])
    with pytest.raises(LiarError, match="one: has answered the same w differently"):  # noqa: PT012
        for k in range(1000):
            audit(np.array([float(k)]), answer(1.0, 1.0), [0])
    assert len(asked) == 6  # each w that was kept is asked again, and then another one is kept
    assert asked[1] == asked[0]
    assert asked[3] == asked[2]
