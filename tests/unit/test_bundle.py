"""The bundle: planes stay below the risk whatever is added, dropped or aggregated."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm.bundle import Bundle, master_for
from bmrm.bundle.storage import cuts_within_budget
from bmrm.regularizers import L2


def risk(w):
    """A smooth convex function, its gradient, and the floor 0."""
    return float(np.logaddexp(0.0, w).sum()), 1.0 / (1.0 + np.exp(-w))


def filled(rng, count, dim=4, **options):
    bundle = Bundle(dim, 0.0, **options)
    for w in 2.0 * rng.normal(size=(count, dim)):
        bundle.add(w, *risk(w))
    return bundle


def assert_below_risk(bundle, rng):
    for w in 3.0 * rng.normal(size=(20, bundle.dim)):
        assert bundle.value(w) <= risk(w)[0] + 1e-12


def test_the_floor_is_the_first_plane():
    bundle = Bundle(3, floor=-2.0)
    assert len(bundle) == 1
    assert bundle.value(np.ones(3)) == -2.0
    assert len(Bundle(3, floor=-np.inf)) == 0
    assert Bundle(3, floor=-np.inf).value(np.ones(3)) == -np.inf


def test_planes_touch_and_stay_below(rng):
    bundle = filled(rng, 7)
    assert len(bundle) == 8
    w = rng.normal(size=4)
    value, a = risk(w)
    bundle.add(w, value, a)
    assert bundle.value(w) == pytest.approx(value)
    assert_below_risk(bundle, rng)


def test_products_and_combinations(rng):
    bundle, v = filled(rng, 5), rng.normal(size=4)
    np.testing.assert_allclose(bundle.products(v), bundle.normals @ v, rtol=1e-14)
    alpha = rng.random(6)
    np.testing.assert_allclose(bundle.combine(alpha), alpha @ bundle.normals, rtol=1e-14)


def test_the_bundle_copies_what_it_is_given(rng):
    bundle, w = Bundle(2, 0.0), np.ones(2)
    value, a = risk(w)
    bundle.add(w, value, a)
    a[:] = 100.0
    assert bundle.value(w) == pytest.approx(value)


def test_idle_planes_are_dropped_and_the_floor_is_not(rng):
    bundle = filled(rng, 4, max_idle=3)
    used = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    for _ in range(3):
        bundle.record(used)
        assert len(bundle) == 5
    bundle.record(used)
    np.testing.assert_array_equal(bundle.ids, [0, 2])
    np.testing.assert_array_equal(bundle.multipliers, [0.0, 1.0])
    assert bundle.value(np.full(4, -50.0)) == 0.0


def test_use_resets_idleness(rng):
    bundle = filled(rng, 2, max_idle=2)
    for multipliers in ([0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0]):
        bundle.record(np.array(multipliers, dtype=float))
    assert len(bundle) == 3


@pytest.mark.parametrize("max_cuts", [3, 5, 10])
@pytest.mark.parametrize("idle", [True, False])
def test_the_number_of_planes_is_bounded(max_cuts, idle, rng):
    bundle = Bundle(4, 0.0, max_cuts=max_cuts)
    for w in rng.normal(size=(60, 4)):
        bundle.add(w, *risk(w))
        assert len(bundle) <= max_cuts
        multipliers = rng.random(len(bundle)) * (rng.random(len(bundle)) < 0.3 if idle else 1.0)
        multipliers[-1] += 0.1
        bundle.record(multipliers / multipliers.sum())
        assert_below_risk(bundle, rng)
    assert bundle.normals.base.shape[0] <= 2 * max_cuts + 4


def test_aggregation_keeps_the_bound_that_was_proved(rng):
    """What the multipliers prove before planes are merged, they prove afterwards."""
    bundle = Bundle(4, 0.0, max_cuts=5)
    regularizer = L2().bind(4)
    lower = -np.inf
    for w in rng.normal(size=(30, 4)):
        bundle.add(w, *risk(w))
        alpha = rng.random(len(bundle))
        alpha /= alpha.sum()
        before = alpha @ bundle.offsets + regularizer.dual(bundle.combine(alpha), 0.1)[0]
        bundle.record(alpha)
        after = master_for(regularizer).solve(bundle, 0.1, np.inf).lower
        assert after >= before - 1e-12
        lower = max(lower, after)
    best = min(0.05 * w @ w + risk(w)[0] for w in np.linspace(-20, 0, 2000)[:, None] * np.ones(4))
    assert lower <= best + 1e-9


def test_planes_without_a_floor(rng):
    bundle = Bundle(4, -np.inf, max_cuts=5)
    for w in rng.normal(size=(30, 4)):
        bundle.add(w, *risk(w))
        bundle.record(np.full(len(bundle), 1.0 / len(bundle)))
        assert len(bundle) <= 5
    assert_below_risk(bundle, rng)


def test_ids_increase_for_ever(rng):
    bundle = Bundle(4, 0.0, max_cuts=4)
    seen = 0
    for w in rng.normal(size=(20, 4)):
        bundle.add(w, *risk(w))
        assert bundle.ids[-1] > seen
        seen = bundle.ids[-1]
        bundle.record(np.eye(len(bundle))[-1])
        assert np.all(np.diff(bundle.ids) > 0)


def test_limits():
    with pytest.raises(ValueError, match="at least 3"):
        Bundle(4, max_cuts=2)
    assert cuts_within_budget(10) == 2000
    assert cuts_within_budget(10**9) == 20
    assert cuts_within_budget(10**6) == 134
