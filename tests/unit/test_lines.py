"""Losses on a line against brute force: value, one-sided slopes, minimum."""

import numpy as np
import pytest

from bmrm import _core

NAMES = _core.loss_names()
THREADS = (2, 3, 4, 8)
PARAMETER = {
    "huber_hinge": 0.5,
    "novelty": 1.0,
    "quantile": 0.25,
    "epsilon_insensitive": 0.25,
    "squared_epsilon_insensitive": 0.25,
    "huber": 0.5,
}
MARGIN = (
    "perceptron",
    "squared_perceptron",
    "hinge",
    "squared_hinge",
    "huber_hinge",
    "exponential",
    "logistic",
)
# Everything here is a multiple of 1/8: kinks are met exactly, by many rows at once.
STEPS = (0.0, 0.5, 1.0, 2.5)


def formula(name, f, y):
    """The loss by its definition."""
    p, z, r = PARAMETER.get(name), y * f, f - y
    with np.errstate(over="ignore"):
        return {
            "perceptron": lambda: np.maximum(0, -z),
            "squared_perceptron": lambda: np.maximum(0, -z) ** 2 / 2,
            "hinge": lambda: np.maximum(0, 1 - z),
            "squared_hinge": lambda: np.maximum(0, 1 - z) ** 2 / 2,
            "huber_hinge": lambda: np.where(z <= 1 - p, 1 - z, np.where(z >= 1 + p, 0, (1 + p - z) ** 2 / (4 * p))),
            "exponential": lambda: np.exp(-z),
            "logistic": lambda: np.logaddexp(0, -z),
            "novelty": lambda: np.maximum(0, p - f),
            "least_squares": lambda: r**2 / 2,
            "least_absolute": lambda: np.abs(r),
            "quantile": lambda: np.maximum(-p * r, (1 - p) * r),
            "epsilon_insensitive": lambda: np.maximum(0, np.abs(r) - p),
            "squared_epsilon_insensitive": lambda: np.maximum(0, np.abs(r) - p) ** 2 / 2,
            "huber": lambda: np.where(np.abs(r) < p, r**2 / 2, p * (np.abs(r) - p / 2)),
            "poisson": lambda: np.exp(f) - y * f + np.where(y > 0, y * np.log(np.maximum(y, 1)) - y, 0),
        }[name]()


def problem(name, m=400, seed=0):
    rng = np.random.default_rng(seed)
    f, g = rng.integers(-16, 17, size=m) / 8, rng.integers(-16, 17, size=m) / 8
    y = rng.integers(0, 4, size=m).astype(float) if name == "poisson" else rng.integers(-16, 17, size=m) / 8
    if name in MARGIN:
        y = np.where(y > 0, 1.0, -1.0)
    weight = rng.integers(0, 5, size=m) / 4
    return f, g, y, weight


def loss_named(name):
    return _core.scalar_loss(name, [PARAMETER[name]] if name in PARAMETER else [])


def golden(value, a, b):
    shrink = (np.sqrt(5) - 1) / 2
    for _ in range(80):
        c, d = b - shrink * (b - a), a + shrink * (b - a)
        a, b = (a, d) if value(c) < value(d) else (c, b)
    return value(0.5 * (a + b))


@pytest.mark.parametrize("name", NAMES)
def test_value_and_slopes(name):
    f, g, y, weight = problem(name)
    line = _core.line(loss_named(name), f, g, y, weight, 1.0)
    h = 1e-7
    for t in STEPS:
        at = [np.sum(weight * formula(name, f + s * g, y)) for s in (t - h, t, t + h)]
        value, left, right = line.evaluate(t)
        scale = np.sum(weight * np.abs(g)) + abs(at[1])
        assert value == pytest.approx(at[1], rel=1e-12)
        assert left <= right
        assert left == pytest.approx((at[1] - at[0]) / h, abs=2e-6 * scale)
        assert right == pytest.approx((at[2] - at[1]) / h, abs=2e-6 * scale)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("m", [1, 7, 400])
def test_minimum(name, seed, m):
    f, g, y, weight = problem(name, m, seed)
    line = _core.line(loss_named(name), f, g, y, weight, 1.0)
    for p, q in ((-3.0, 2.0), (-40.0, 10.0), (0.0, 1.0), (5.0, 1e-3)):
        t, slope, trials, bounded = _core.minimize_on_line([line], p, q)

        def value(t, p=p, q=q):
            return p * t + q * t * t / 2 + np.sum(weight * formula(name, f + t * g, y))

        assert bounded
        assert trials <= 200
        grid = np.linspace(0, 2 * t + 1, 200)
        values = [value(s) for s in grid]
        k = int(np.argmin(values))
        brute = min(values[k], golden(value, grid[max(k - 1, 0)], grid[min(k + 1, 199)]))
        assert value(t) <= brute + 1e-9 * (abs(brute) + abs(value(0.0)) + abs(p * t))
        assert slope >= 0.0 or abs(slope) <= 1e-8 * abs(p + line.evaluate(0.0)[2])


@pytest.mark.parametrize("name", NAMES)
def test_extreme_slopes_are_the_one_sided_ones(name):
    f, g, y, weight = problem(name)
    loss = loss_named(name)
    slopes = np.full(len(f), np.nan)
    loss.extreme(f, g, y, weight, 1.0, slopes)
    right = _core.line(loss, f, g, y, weight, 1.0).evaluate(0.0)[2]
    assert g @ slopes == pytest.approx(right, rel=1e-12, abs=1e-12)


def test_all_kinks_at_zero():
    m = 50
    zeros, g = np.zeros(m), np.where(np.arange(m) < 30, 1.0, -1.0)
    line = _core.line(loss_named("least_absolute"), zeros, g, zeros, None, 1.0)
    assert line.evaluate(0.0) == (0.0, -50.0, 50.0)
    assert _core.minimize_on_line([line], -49.0, 1.0)[0] == 0.0
    assert _core.minimize_on_line([line], -52.0, 1.0)[0] == 2.0


def test_kinks_tied_at_the_minimum():
    f, g, y = np.full(20, -1.0), np.ones(20), np.ones(20)
    line = _core.line(loss_named("hinge"), f, g, y, None, 1.0)
    t, slope, _, bounded = _core.minimize_on_line([line], 1.0, 0.0)
    assert bounded
    assert t == pytest.approx(2.0, rel=1e-12)
    assert slope >= 0.0


def test_a_slope_that_stays_negative_is_unbounded():
    line = _core.line(loss_named("hinge"), np.zeros(3), np.ones(3), np.ones(3), None, 1.0)
    assert not _core.minimize_on_line([line], -1.0, 0.0)[3]


@pytest.mark.parametrize("name", NAMES)
def test_threads_change_no_bit(name):
    f, g, y, weight = problem(name, m=70001)
    f, g = f / 3, g / 7
    loss = loss_named(name)
    line = _core.line(loss, f, g, y, weight, 1.0)
    slopes = np.empty_like(f)
    sums = loss.evaluate(f, y, weight, 1.0, slopes)
    at, best = line.evaluate(0.375), _core.minimize_on_line([line], -10.0, 100.0)
    for t in THREADS:
        again = np.empty_like(f)
        assert loss.evaluate(f, y, weight, 1.0, again, t) == sums
        assert np.array_equal(again, slopes)
        assert line.evaluate(0.375, t) == at
        assert _core.minimize_on_line([line], -10.0, 100.0, 1.0, t) == best


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_on_scores(name, weighted):
    for m in (0, 1, 3, 4, 401):
        f, _, y, weight = problem(name, m)
        slopes = np.full(m, np.nan)
        value, total = loss_named(name).evaluate(f, y, weight if weighted else None, 0.5, slopes)
        c = weight if weighted else np.full(m, 0.5)
        assert value == pytest.approx(np.sum(c * formula(name, f, y)), rel=1e-12, abs=1e-300)
        assert total == pytest.approx(np.sum(slopes), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("toward", [1.0, -1.0])
def test_a_kink_among_smooth_rows_is_found_at_once(toward):
    f, g, y, weight = problem("logistic", 400)
    smooth = _core.line(loss_named("logistic"), f, 0.01 * toward * g, y, weight, 1.0)
    t_kink = 0.7
    kinked = _core.line(
        loss_named("least_absolute"), np.array([-t_kink * toward]), np.array([toward]), np.zeros(1), None, 1e3
    )
    t, slope, trials, bounded = _core.minimize_on_line([smooth, kinked], 0.0, 0.0)
    assert bounded
    assert slope > 0.0
    assert t == pytest.approx(t_kink, rel=1e-15)
    assert trials <= 8
