"""Masked sums: masks cancel to the last bit, and the certificate is a proof for coarse steps too."""

from __future__ import annotations

import numpy as np
import pytest
from parties import parties, recorded, rows

import bmrm
from bmrm import ContradictionError, LinearRisk, OwnersRisk, Problem, solve
from bmrm.owners import Refused
from bmrm.owners.masks import Masks, decoded, encoded, power_of_two
from bmrm.owners.wire import unpacked

pytest.importorskip("cryptography", reason="masks need cryptography")


def agreed(n):
    masks = [Masks() for _ in range(n)]
    for place, own in enumerate(masks):
        own.join([each.public for each in masks], place)
    return masks


@pytest.mark.parametrize("n", [2, 3, 7])
def test_masks_cancel_exactly(n, rng):
    masks = agreed(n)
    for round in (1, 2, 9):
        words = [rng.integers(0, 2**64, size=100, dtype=np.uint64) for _ in range(n)]
        sent = [own.masked(round, each, b"") for own, each in zip(masks, words)]
        total = sum(int(each[0]) for each in words) % 2**64
        assert np.sum(sent, axis=0, dtype=np.uint64)[0] == total
        np.testing.assert_array_equal(np.sum(sent, axis=0, dtype=np.uint64), np.sum(words, axis=0, dtype=np.uint64))
        assert all((one != other).all() for one, other in zip(sent, words))


def test_what_one_owner_sends_is_noise(rng):
    """Bits of masked zeros are even, and those of the same numbers in two rounds have nothing in common."""
    one, _ = agreed(2)
    words = np.zeros(4000, dtype=np.uint64)
    first, second = one.masked(1, words, b""), one.masked(2, words, b"")
    for sent in (first, first ^ second):
        share = np.unpackbits(sent.view(np.uint8)).mean()
        assert abs(share - 0.5) < 4.0 * 0.5 / np.sqrt(4000 * 64)


def test_a_round_is_answered_once(rng):
    one, _ = agreed(2)
    one.masked(3, np.zeros(1, dtype=np.uint64), b"")
    for round in (3, 2):
        with pytest.raises(Refused, match=f"round {round} of the masks is over"):
            one.masked(round, np.ones(1, dtype=np.uint64), b"")
    with pytest.raises(Refused, match="not agreed"):
        Masks().masked(1, np.zeros(1, dtype=np.uint64), b"")


def test_keys_must_be_those_of_different_owners():
    one, two = Masks(), Masks()
    for keys in ([one.public], [one.public, one.public], [two.public, two.public], [two.public, one.public]):
        with pytest.raises(Refused, match="at least two owners, all different, and have mine"):
            one.join(keys, 0)


@pytest.mark.parametrize("q", [2.0**-40, 2.0**-12, 1.0])
def test_rounding_of_a_sum(q, rng):
    x = rng.normal(size=(4, 500)) * np.logspace(-3, 3, 500)
    total = decoded([encoded(row, q, 4) for row in x], q)
    assert np.abs(total - x.sum(axis=0)).max() <= 2.0 * q + 1e-12 * np.abs(x).max()


def test_numbers_that_do_not_fit():
    assert decoded([encoded(np.array([-(2.0**20)]), 2.0**-40, 2)] * 2, 2.0**-40) == -(2.0**21)
    for x in (2.0**21, np.inf, np.nan):
        with pytest.raises(Refused, match="too large for masks with the step"):
            encoded(np.array([x]), 2.0**-40, 2)


def test_powers_of_two():
    assert [power_of_two(x) for x in (0.0, 1.0, 1.1, 0.3)] == [1.0, 1.0, 2.0, 0.5]


def drawn():
    rng = np.random.default_rng(5)
    for k in range(40):
        loss = ["hinge", "logistic", "least_squares", "quantile", "squared_hinge"][k % 5]
        X, y = rows(rng, int(rng.integers(20, 60)) * 3, int(rng.integers(2, 9)))
        X = X * 10.0 ** rng.uniform(-1, 1) + rng.normal()
        y = X[:, 0] + rng.normal(size=len(y)) if loss in ("least_squares", "quantile") else y
        intercept, regularizer = bool(k % 2), ["l2", "l1", "elastic_net"][k % 3]
        yield X, y, loss, regularizer, 10.0 ** rng.uniform(-3, -1), intercept


PROBLEMS = list(drawn())


@pytest.mark.parametrize(("X", "y", "loss", "regularizer", "lam", "intercept"), PROBLEMS, ids=range(40))
def test_the_certificate_is_a_proof(X, y, loss, regularizer, lam, intercept):
    one = solve(Problem(LinearRisk(X, y, loss, intercept=intercept), regularizer, lam), "ls_bmrm", tol=1e-9)
    for scale in (2.0**-40, 2.0**-12, 2.0**-7):
        options = {"lam": lam, "regularizer": regularizer, "intercept": intercept}
        with OwnersRisk(parties(X, y), loss, masked=True, scale=scale, **options) as risk:
            result = solve(risk.problem, "ls_bmrm", tol=1e-6, max_iter=200 if scale == 2.0**-40 else 15)
        assert result.certificate.lower <= one.certificate.upper
        assert one.certificate.lower <= result.certificate.upper
        if scale == 2.0**-40:
            assert result.converged
            assert result.certificate.upper == pytest.approx(one.certificate.upper, rel=1e-5)


def test_without_the_charge_it_would_be_none():
    """Planes and values as they come, with a coarse step, exclude the optimum: the charge is needed."""
    wrong = 0
    for X, y, loss, regularizer, lam, intercept in PROBLEMS:
        if intercept or regularizer != "l2":
            continue
        one = solve(Problem(LinearRisk(X, y, loss), regularizer, lam), "ls_bmrm", tol=1e-9)
        with OwnersRisk(parties(X, y), loss, lam=lam, masked=True, scale=2.0**-7) as risk:
            risk.parts.lowered = risk.parts.error = 0.0
            try:
                result = solve(risk.problem, "ls_bmrm", tol=1e-6, max_iter=15)
            except (ValueError, ContradictionError) as error:
                assert "lower bound" in str(error)  # noqa: PT017
                wrong += 1
                continue
        bounds = result.certificate
        wrong += not bounds.lower <= one.certificate.upper or not one.certificate.lower <= bounds.upper
    assert wrong >= 3


def test_answers_are_masked(rng, monkeypatch):
    """What each owner sends about w = 0 is not its value, whose double has few digits; the sum is."""
    X, y = rows(rng)
    with recorded(monkeypatch) as sent, OwnersRisk(parties(X, y), "hinge", lam=0.1, masked=True) as risk:
        sent.clear()
        value, a = risk.evaluate(np.full(5, 0.1))
        words = [unpacked(payload).arrays[0] for payload in sent]
        step = risk.parts.q
    assert len(words) == 3
    assert all(each.dtype == np.uint64 for each in words)
    np.testing.assert_allclose(decoded(words, step)[:6], [value, *a], atol=1e-15)
    for own in words:
        assert np.abs(own.view(np.int64).astype(float) * step).min() > 1e-3  # nobody's numbers are that large
    exact = LinearRisk(X, y, "hinge").evaluate(np.full(5, 0.1))
    np.testing.assert_allclose([value, *a], [exact[0], *exact[1]], atol=2.0 * step)


def test_wrong_input(rng):
    X, y = rows(rng)
    with pytest.raises(ValueError, match="at least two owners"):
        OwnersRisk(parties(X, y)[:1], "hinge", lam=0.1, masked=True)
    with pytest.raises(ValueError, match="scale must be a power of two"):
        OwnersRisk(parties(X, y), "hinge", lam=0.1, masked=True, scale=0.3)
    with pytest.raises(ValueError, match="masked sums need a regularizer"):
        OwnersRisk(parties(X, y), "logistic", lam=0.1, masked=True, regularizer="zero")
    with pytest.raises(ValueError, match="no bounds"):
        OwnersRisk(parties(X, y), "hinge", lam=0.1, regularizer=bmrm.regularizers.L2(bounds=(-1.0, 1.0)))
    classes = np.argmax(X[:, :3], axis=1)
    with pytest.raises(ValueError, match="2 unpenalized constants"):
        OwnersRisk(parties(X, classes), "softmax", lam=0.1, masked=True, intercept=True)
    with OwnersRisk(parties(X, classes), "softmax", lam=0.1, masked=True) as risk:
        assert solve(risk.problem, tol=1e-4).converged


def test_an_owner_may_insist_on_masks(rng):
    X, y = rows(rng)
    with pytest.raises(Refused, match="owner 0 refused: this owner answers under masks only"):
        OwnersRisk(parties(X, y, masked_only=2), "hinge", lam=0.1)
    with pytest.raises(Refused, match="at least 4 owners; there are 3"):
        OwnersRisk(parties(X, y, masked_only=4), "hinge", lam=0.1, masked=True)
    with OwnersRisk(parties(X, y, masked_only=3), "hinge", lam=0.1, masked=True) as risk:
        risk.evaluate(np.zeros(5))


def test_a_sum_too_large_for_the_step(rng):
    X, y = rows(rng)
    with (
        OwnersRisk(parties(X, y), "exponential", lam=1e-3, masked=True) as risk,
        pytest.raises(Refused, match="coarser"),
    ):
        risk.evaluate(np.full(5, 20.0))
