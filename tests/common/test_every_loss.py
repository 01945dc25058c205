"""Every registered loss obeys the rules and equals its formula; losses that break a rule are found out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from catalogue import all_losses, scalar_losses
from reference import sets
from reference.naive import NAIVE
from scipy.optimize import minimize_scalar

from bmrm import losses
from bmrm._traits import Trait
from bmrm.losses import Loss, PiecewiseQuadratic, VectorLoss
from bmrm.testing import check_loss

every_loss = pytest.mark.parametrize("loss", all_losses(), ids=repr)
every_row_loss = pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.couples == "row"], ids=repr)
every_set_loss = pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.couples != "row"], ids=repr)
every_scalar_loss = pytest.mark.parametrize("loss", scalar_losses(), ids=repr)


def draw_scores(loss, targets, rng, m, size):
    shape = (m, loss.n_scores(targets)) if isinstance(loss, VectorLoss) else m
    return size * rng.normal(size=shape)


@every_loss
def test_rules(loss):
    check_loss(loss)


@every_row_loss
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_value_is_the_formula(loss, size, rng):
    y = loss.encode(*loss.draw(rng, 200))
    f, weight = draw_scores(loss, y, rng, 200, size), rng.uniform(0.0, 2.0, size=200)
    f[:20] = (np.arange(-10, 10) / 2.0 * np.ones_like(f[:20]).T).T
    expected = NAIVE[loss.name](loss, f, y)
    value, _ = loss.evaluate(f, y, weight)
    assert value == pytest.approx(weight @ expected, rel=1e-13, abs=1e-13)
    rows = [loss.evaluate(f, y, unit)[0] for unit in np.eye(200)]
    np.testing.assert_allclose(rows, expected, rtol=1e-13, atol=1e-13)


@every_set_loss
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_value_is_that_of_brute_force(loss, size, rng):
    """Random scores, and scores from a grid, where many are equal or exactly 1 apart."""
    m = sets.rows_for(loss, 40)
    for _ in range(20):
        y, groups = loss.draw(rng, m)
        targets = loss.encode(y, groups)
        rows = {"row": np.arange(m), "group": groups, "none": np.zeros(m, int)}[loss.weighted_by]
        weight = rng.uniform(0.1, 2.0, size=m)[rows]
        terms = sets.TERMS[loss.name](loss, y, groups, weight)
        for f in (size * rng.normal(size=m), size * rng.integers(-3, 4, size=m), 0.5 * rng.integers(-3, 4, size=m)):
            value, slopes = loss.evaluate(f.astype(float), targets, weight)
            assert value == pytest.approx(sets.value(terms, f), rel=1e-13, abs=1e-13)
            assert loss.evaluate(f.astype(float), targets, weight)[0] == value
            for g in f + size * rng.normal(size=(10, m)) * rng.choice([1e-3, 1.0]):
                assert sets.value(terms, g) >= value + slopes @ (g - f) - 1e-12 * (1.0 + size)


@every_scalar_loss
@pytest.mark.parametrize("q", [1e-3, 0.7, 30.0])
def test_prox_is_the_minimum(loss, q, rng):
    """The point is that of a search by value, its slope the quotient, and dslope the slope's difference quotient."""
    y, v = loss.encode(*loss.draw(rng, 60)), 3.0 * rng.normal(size=60)
    z, slopes, dslopes = (np.empty(60) for _ in range(3))
    loss.kernel().prox(v, y, q, z, slopes, dslopes)
    for i in range(60):

        def objective(t, i=i):
            return q * float(NAIVE[loss.name](loss, np.array([t]), y[i : i + 1])[0]) + 0.5 * (t - v[i]) ** 2

        found = minimize_scalar(objective, bracket=(v[i] - 1.0, v[i] + 1.0), tol=1e-12)
        assert objective(z[i]) <= found.fun + 1e-12 * (1.0 + abs(found.fun))
        assert z[i] == pytest.approx(found.x, rel=1e-6, abs=1e-6 * (1.0 + q))
    np.testing.assert_allclose(q * slopes, v - z, rtol=1e-11, atol=1e-11 * (1.0 + q))
    step, ends = 1e-6, [np.empty(60), np.empty(60)]
    for side, end in zip((-step, step), ends):
        loss.kernel().prox(v + side, y, np.full(60, q), np.empty(60), end)
    differences = (ends[1] - ends[0]) / (2.0 * step)
    at_a_bend = np.abs(differences - dslopes) > 1e-4 * (1.0 + 1.0 / q)
    assert at_a_bend.sum() <= 1


@every_scalar_loss
def test_prox_for_extreme_arguments(loss, rng):
    y = loss.encode(*loss.draw(rng, 40))
    for q in (0.0, 1e-300, 1e-12, 1.0, 1e12):
        for size in (1.0, 1e3, 1e12):
            v = size * rng.normal(size=40)
            z, slopes, dslopes = (np.empty(40) for _ in range(3))
            loss.kernel().prox(v, y, q, z, slopes, dslopes)
            assert np.isfinite(z).all()
            assert np.isfinite(slopes).all()
            assert (dslopes >= 0.0).all()
            if q == 0.0 and loss.name not in ("exponential", "poisson"):
                np.testing.assert_allclose(z, v, rtol=1e-14, atol=1e-15)
            if Trait.SMOOTH_RISK in loss.traits:
                _, at_z = loss.evaluate(z, y, np.ones(40))
                np.testing.assert_allclose(slopes, at_z, rtol=1e-12, atol=1e-15 * (1.0 + np.abs(z).max()))


def test_prox_refuses():
    kernel, x = losses.Hinge().kernel(), np.ones(3)
    with pytest.raises(ValueError, match="q must be at least 0"):
        kernel.prox(x, x, -1.0, np.empty(3), np.empty(3))
    with pytest.raises(ValueError, match="q has length 2"):
        kernel.prox(x, x, np.ones(2), np.empty(3), np.empty(3))


@every_scalar_loss
def test_no_rows(loss):
    value, slopes = loss.evaluate(np.empty(0), np.empty(0), np.empty(0))
    assert value == 0.0
    assert slopes.shape == (0,)


@every_loss
def test_groups_are_refused(loss, rng):
    y, groups = loss.draw(rng, 4)
    if groups is None:
        with pytest.raises(ValueError, match="groups"):
            loss.encode(y, np.zeros(4, dtype=int))


@every_loss
def test_traits_are_consistent(loss):
    if Trait.CURVATURE in loss.traits:
        assert Trait.SMOOTH_RISK in loss.traits
    assert (Trait.UNBOUNDED_RISK in loss.traits) == (loss.floor == -np.inf)
    assert hash(loss) == hash(type(loss)(**{n: getattr(loss, n) for n in init_fields(loss)}))


def init_fields(loss):
    return [field.name for field in dataclasses.fields(loss) if field.init]


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (losses.Hinge(), [1.0, 2.0], "row 1 is 2.*-1 and 1"),
        (losses.Logistic(), [1.0, 0.5], "row 1 is 0.5"),
        (losses.Poisson(), [1.0, -1.0], "row 1 is -1.*at least 0"),
        (losses.LeastSquares(), [[1.0, 2.0]], "one number for each row"),
        (losses.LeastSquares(), ["a"], "numbers"),
    ],
    ids=str,
)
def test_targets_outside_the_domain(loss, y, message):
    with pytest.raises(ValueError, match=message):
        loss.encode(y)


def test_zero_one_targets_are_signs():
    np.testing.assert_array_equal(losses.Hinge().encode([0, 1, 1]), [-1.0, 1.0, 1.0])
    np.testing.assert_array_equal(losses.Hinge().encode([True, False]), [1.0, -1.0])


@pytest.mark.parametrize("make", [losses.Exponential, losses.Poisson])
def test_overflow_is_infinite_and_never_nan(make):
    loss = make()
    for size in (710.0, 800.0, 1e8):
        y = np.array([1.0])
        f = np.array([-size if make is losses.Exponential else size])
        value, slopes = loss.evaluate(f, y, np.ones(1))
        assert value == np.inf
        assert not np.isnan(slopes).any()


tier_one = [
    (losses.Hinge(), PiecewiseQuadratic([1.0], [(0, -1, 1), (0, 0, 0)], of="margin")),
    (losses.SquaredHinge(), PiecewiseQuadratic([1.0], [(0.5, -1, 0.5), (0, 0, 0)], of="margin")),
    (
        losses.Huber(delta=0.5),
        PiecewiseQuadratic([-0.5, 0.5], [(0, -0.5, -0.125), (0.5, 0, 0), (0, 0.5, -0.125)]),
    ),
    (losses.Quantile(tau=0.75), PiecewiseQuadratic([0.0], [(0, -0.75, 0), (0, 0.25, 0)])),
    (
        losses.EpsilonInsensitive(eps=0.5),
        PiecewiseQuadratic([-0.5, 0.5], [(0, -1, -0.5), (0, 0, 0), (0, 1, -0.5)]),
    ),
]


@pytest.mark.parametrize(("built_in", "given"), tier_one, ids=lambda loss: loss.name)
def test_piecewise_quadratic_equals_the_built_in(built_in, given, rng):
    y = built_in.encode(built_in.draw(rng, 300)[0])
    f, weight = 2.0 * rng.normal(size=300), rng.uniform(size=300)
    (value, slopes), (value2, slopes2) = (loss.evaluate(f, y, weight) for loss in (built_in, given))
    assert value2 == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(slopes2, slopes, rtol=1e-14, atol=1e-14)
    assert (Trait.SMOOTH_RISK in given.traits) == (Trait.SMOOTH_RISK in built_in.traits)
    assert given.floor == built_in.floor


@pytest.mark.parametrize(
    ("knots", "coefficients", "message"),
    [
        ([0.0], [(-1, 0, 0), (0, 0, 0)], "negative a"),
        ([0.0], [(0, 1, 0), (0, -1, 0)], "slope falls"),
        ([0.0], [(0, 0, 0), (0, 0, 1)], "do not join"),
        ([1.0, 0.0], [(0, 0, 0)] * 3, "increase"),
        ([0.0], [(0, 0, 0)], "triples"),
        ([np.nan], [(0, 0, 0)] * 2, "finite"),
    ],
)
def test_piecewise_quadratic_refuses(knots, coefficients, message):
    with pytest.raises(ValueError, match=message):
        PiecewiseQuadratic(knots, coefficients)


class Absolute(Loss):
    """|f - y| with hooks to break one rule at a time."""

    def rows(self, r):
        return np.abs(r), np.sign(r)

    def evaluate(self, scores, targets, weight):
        value, slopes = self.rows(scores - targets)
        return float(weight @ value), weight * slopes


class Concave(Absolute):
    def rows(self, r):
        return -np.abs(r), -np.sign(r)


class Wavy(Absolute):
    def rows(self, r):
        return np.sin(3 * r) + 1, 3 * np.cos(3 * r)


class WrongSign(Absolute):
    def rows(self, r):
        return np.abs(r), -np.sign(r)


class WrongFactor(Absolute):
    traits = frozenset({Trait.SMOOTH_RISK})

    def rows(self, r):
        return 0.5 * r**2, r * (1 - 1e-3)


class BelowFloor(Absolute):
    floor = 0.5


class NotSmooth(Absolute):
    traits = frozenset({Trait.SMOOTH_RISK})


class ForgetsWeights(Absolute):
    def evaluate(self, scores, targets, weight):
        r = scores - targets
        return float(weight @ np.abs(r)), np.sign(r)


class ZeroTimesInfinity(Absolute):
    def evaluate(self, scores, targets, weight):
        with np.errstate(over="ignore", invalid="ignore"):
            e = np.exp(scores)
            return float(weight @ e), weight * e


class Overwrites(Absolute):
    def evaluate(self, scores, targets, weight):
        scores -= targets
        return float(weight @ np.abs(scores)), weight * np.sign(scores)


class AcceptsNaN(Absolute):
    def encode(self, y, groups=None):
        return np.asarray(y, dtype=float)


class WrongShape(Absolute):
    def rows(self, r):
        return np.abs(r), np.sign(r[:1])

    def evaluate(self, scores, targets, weight):
        value, slopes = self.rows(scores - targets)
        return float(weight @ value), slopes


class DecidesWrongly(Absolute):
    def decide(self, scores):
        return scores[:-1]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Concave, "not convex"),
        (Wavy, "not convex"),
        (WrongSign, "no subgradient"),
        (WrongFactor, "no subgradient|finite differences"),
        (BelowFloor, "below its floor"),
        (NotSmooth, "jumps"),
        (ForgetsWeights, "do not include the weights"),
        (ZeroTimesInfinity, "overflows at a score of 710.*rows of weight 0"),
        (Overwrites, "scores .* modified"),
        (AcceptsNaN, "accepts a target that is nan"),
        (WrongShape, "shape"),
        (DecidesWrongly, "23 answers for 24"),
    ],
)
def test_broken_losses_are_found_out(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(broken())


def test_a_right_loss_without_kernel_passes():
    check_loss(Absolute())
    check_loss(Absolute(), rng=np.random.default_rng(5))
