"""Every registered regularizer obeys the rules; its dual, prox and reach are compared with numerical minima."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import all_regularizers, regularizer_id

from bmrm.regularizers import L1, L2, REGULARIZERS, ElasticNet
from bmrm.testing import check_regularizer

DIM = 5

every_regularizer = pytest.mark.parametrize("regularizer", all_regularizers(DIM), ids=regularizer_id)
more = [
    L2(weights=[0.0, 1.0, 0.0, 2.0, 0.5]),
    L1(weights=[0.0, 1.0, 0.0, 2.0, 0.5]),
    L2(weights=[0.0, 1.0, 1.0, 1.0, 1.0], bounds=(-1.0, np.inf)),
    L1(weights=[0.0, 1.0, 1.0, 1.0, 1.0], bounds=(-np.inf, 0.5)),
    L2(bounds=(0.1, 0.2)),
    L1(bounds=(-0.3, -0.1)),
    ElasticNet(weights=[0.0, 1.0, 0.0, 2.0, 0.5], r=0.8),
    ElasticNet(weights=[0.0, 1.0, 1.0, 1.0, 1.0], bounds=(-np.inf, 0.5), r=0.3),
    ElasticNet(bounds=(0.1, 0.2), r=0.9),
    ElasticNet(weights=[0.0, 1.0, 3.0, 2.0, 0.5], r=1.0),
    ElasticNet(weights=[0.0, 1.0, 3.0, 2.0, 0.5], r=0.0),
]


@every_regularizer
def test_rules(regularizer):
    check_regularizer(regularizer, DIM)


@pytest.mark.parametrize("regularizer", more, ids=repr)
def test_rules_with_weights_and_bounds(regularizer):
    check_regularizer(regularizer, DIM)


@pytest.mark.parametrize("dim", [1, 2, 17])
@pytest.mark.parametrize("name", REGULARIZERS)
def test_rules_in_other_dimensions(name, dim):
    for regularizer in REGULARIZERS[name].examples(dim):
        check_regularizer(regularizer, dim, rng=np.random.default_rng(dim))


def grid_minimum(regularizer, c, lam, box):
    """Minimize lam Omega(w) + <c, w> coordinate by coordinate on a fine grid; separable regularizers only."""
    total = 0.0
    for j in range(c.size):
        t = np.union1d(np.linspace(-box, box, 20001), [0.0])
        lower, upper = (np.broadcast_to(side, c.shape)[j] for side in (regularizer.lower, regularizer.upper))
        t = np.union1d(t[(t >= lower) & (t <= upper)], [v for v in (lower, upper) if abs(v) <= box])
        weight = np.broadcast_to(regularizer.s, c.shape)[j]
        r = getattr(regularizer, "r", np.nan)
        absolute, square = {"l1": (1.0, 0.0), "l2": (0.0, 1.0), "zero": (0.0, 0.0)}.get(regularizer.name, (r, 1.0 - r))
        omega = absolute * np.abs(t) + square * 0.5 * t**2
        total += np.min(lam * weight * omega + c[j] * t)
    return total


@pytest.mark.parametrize("regularizer", [*all_regularizers(DIM), *(r.bind(DIM) for r in more)], ids=regularizer_id)
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_dual_is_the_minimum_on_a_grid(regularizer, lam, rng):
    for size in (1e-3, 0.5, 3.0):
        c = size * rng.normal(size=DIM)
        least = grid_minimum(regularizer, c, lam, 3.0)
        assert regularizer.dual(c, lam, 3.0)[0] == pytest.approx(least, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_dual_without_a_minimum_is_minus_infinity(name):
    regularizer = REGULARIZERS[name](weights=[0.0, 1.0]).bind(2)
    assert regularizer.dual(np.array([1.0, 0.0]), 1.0)[0] == -np.inf
    assert regularizer.dual(np.array([-1.0, 0.1]), 1.0)[0] == -np.inf
    if name == "l1":
        assert regularizer.dual(np.array([0.0, 2.0]), 1.0)[0] == -np.inf


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_reach_is_attained(name, rng):
    s, a, level = rng.uniform(0.5, 2.0, size=DIM), rng.normal(size=DIM), 0.7
    regularizer = REGULARIZERS[name](weights=s).bind(DIM)
    w = a / s
    if name == "l1":
        w = np.where(np.abs(w) == np.abs(w).max(), np.sign(a), 0.0)
    w *= level / regularizer.value(w) if name == "l1" else np.sqrt(level / regularizer.value(w))
    assert regularizer.value(w) == pytest.approx(level)
    assert regularizer.reach(a, level) == pytest.approx(a @ w)


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_plane_bound_is_tight(name, rng):
    regularizer = REGULARIZERS[name]().bind(DIM)
    a, b, lam = rng.normal(size=DIM), 0.5, 0.8
    if name == "l2":
        expected = max(b - a @ a / (2 * lam), 0.0)
        theta = min(1.0, b * lam / (a @ a))
        expected = max(expected, theta * b - theta**2 * (a @ a) / (2 * lam))
    else:
        expected = min(1.0, lam / np.abs(a).max()) * b
    assert regularizer.plane_bound(lam, a, b, 0.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_binding(name):
    cls = REGULARIZERS[name]
    np.testing.assert_array_equal(cls().bind(3, unpenalized=(2,)).s, [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(cls(weights=[2.0, 3.0]).bind(3, unpenalized=(2,)).s, [2.0, 3.0, 0.0])
    np.testing.assert_array_equal(cls(weights=[2.0, 3.0, 4.0]).bind(3, unpenalized=(2,)).s, [2.0, 3.0, 4.0])
    bounded = cls(bounds=(-1.0, 1.0)).bind(3, unpenalized=(2,))
    np.testing.assert_array_equal(bounded.upper, [1.0, 1.0, np.inf])
    np.testing.assert_array_equal(bounded.free, [2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [1.0, -1.0]}, "weight 1 is -1"),
        ({"weights": [np.nan]}, "weight 0 is nan"),
        ({"bounds": (1.0, 0.0)}, "lower <= upper"),
        ({"bounds": 3.0}, "pair"),
        ({"bounds": ("a", "b")}, "pair"),
    ],
)
@pytest.mark.parametrize("cls", [L1, L2])
def test_bad_arguments(cls, arguments, message):
    with pytest.raises(ValueError, match=message):
        cls(**arguments)


@pytest.mark.parametrize("r", [-0.1, 1.1, np.nan, "much", None])
def test_the_share_of_absolute_values_is_checked(r):
    with pytest.raises(ValueError, match="'r'"):
        ElasticNet(r=r)


@pytest.mark.parametrize(("r", "cls"), [(1.0, L1), (0.0, L2)])
@pytest.mark.parametrize(
    "arguments", [{}, {"weights": [0.0, 1.0, 0.5, 2.0, 3.0]}, {"bounds": (-0.1, 0.2)}], ids=["plain", "free", "bounds"]
)
def test_the_ends_of_the_elastic_net(r, cls, arguments, rng):
    """r = 1 is l1 and r = 0 is l2: the same numbers from every method."""
    net, other = ElasticNet(r=r, **arguments).bind(DIM), cls(**arguments).bind(DIM)
    assert net.traits == other.traits
    for _ in range(20):
        w, d, a = other.clip(rng.normal(size=DIM) * (rng.random(DIM) < 0.6)), rng.normal(size=DIM), rng.normal(size=DIM)
        assert net.value(w) == pytest.approx(other.value(w), rel=1e-14)
        np.testing.assert_allclose(net.subgradient(w), other.subgradient(w), rtol=1e-15)
        np.testing.assert_allclose(net.extreme(w, d), other.extreme(w, d), rtol=1e-15)
        np.testing.assert_allclose(net.prox(d, 0.3), other.prox(d, 0.3), rtol=1e-15)
        assert net.along(w, d).evaluate(0.7) == pytest.approx(other.along(w, d).evaluate(0.7), rel=1e-14)
        assert net.largest_multiple(a, 0.5) == other.largest_multiple(a, 0.5)
        assert net.reach(a, 0.7) == pytest.approx(other.reach(a, 0.7), rel=1e-9)
        for box in (np.inf, 2.0):
            least, at = net.dual(a, 0.5, box)
            assert least == pytest.approx(other.dual(a, 0.5, box)[0], rel=1e-14)
            np.testing.assert_allclose(at, other.dual(a, 0.5, box)[1], rtol=1e-14)


def test_reach_of_the_elastic_net_is_attained(rng):
    """The bound of a'w over Omega(w) <= level is met by a point of that level."""
    s, a, level, r = rng.uniform(0.5, 2.0, size=DIM), rng.normal(size=DIM), 0.7, 0.6
    net = ElasticNet(weights=s, r=r).bind(DIM)
    mus = np.geomspace(1e-3, 1e3, 200001)
    size = np.abs(a)[:, None] - mus * r * s[:, None]
    w = np.maximum(size, 0.0) / (mus * (1 - r) * s[:, None])
    omega = np.sum(s[:, None] * (r * w + (1 - r) / 2 * w**2), axis=0)
    inside = omega <= level
    assert net.reach(a, level) == pytest.approx(float(np.max(np.abs(a) @ w[:, inside])), rel=1e-3)


def test_wrong_length():
    with pytest.raises(ValueError, match="2 weights, expected 3, one for each coefficient"):
        L2(weights=[1.0, 1.0]).bind(3)


class NotTheProx(L2):
    def prox(self, v, step):
        return v / (1.0 + 0.9 * step)


class DualTooHigh(L2):
    def dual(self, c, lam, box=np.inf):
        value, w = super().dual(c, lam, box)
        return 0.5 * value, w


class WrongSlope(L1):
    def extreme(self, w, d):
        return self.s * np.sign(w)


@pytest.mark.parametrize(("broken", "message"), [(NotTheProx, "prox"), (DualTooHigh, "dual"), (WrongSlope, "extreme")])
def test_broken_regularizers_are_found_out(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_regularizer(broken(), DIM)
