"""Every registered loss obeys the rules and equals its formula; losses that break a rule are found out."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import all_losses
from reference.naive import NAIVE

from bmrm import losses
from bmrm._traits import Trait
from bmrm.losses import Loss, PiecewiseQuadratic
from bmrm.testing import check_loss

every_loss = pytest.mark.parametrize("loss", all_losses(), ids=repr)


@every_loss
def test_rules(loss):
    check_loss(loss)


@every_loss
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_value_is_the_formula(loss, size, rng):
    y = loss.encode(*loss.draw(rng, 200))
    f, weight = size * rng.normal(size=200), rng.uniform(0.0, 2.0, size=200)
    f[:20] = np.arange(-10, 10) / 2.0
    expected = NAIVE[loss.name](loss, f, y)
    value, _ = loss.evaluate(f, y, weight)
    assert value == pytest.approx(weight @ expected, rel=1e-13, abs=1e-13)
    rows = [loss.evaluate(f[i : i + 1], y[i : i + 1], np.ones(1))[0] for i in range(f.size)]
    np.testing.assert_allclose(rows, expected, rtol=1e-13, atol=1e-13)


@every_loss
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
    return [name for name, field in loss.__dataclass_fields__.items() if field.init]


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
    for size in (346.0, 800.0, 1e8):
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
        (ZeroTimesInfinity, "rows of weight 0"),
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
