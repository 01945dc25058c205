"""The parts of privacy: the accountant, noise, rows of bounded norm, and how far one row moves a plane."""

from __future__ import annotations

import math

import numpy as np
import pytest
from catalogue import all_losses
from scipy import sparse, stats
from scipy.optimize import brentq

import bmrm
from bmrm import DataError, LinearRisk, Privacy
from bmrm.losses.vector import ClassLoss
from bmrm.owners.accountant import epsilon_of, ratio_of, rho_of
from bmrm.owners.guard import Refused
from bmrm.owners.ledger import BudgetSpent, Ledger
from bmrm.owners.noise import GRID, on_grid, steps_of_noise
from bmrm.owners.privacy import Mechanism, clipped
from bmrm.owners.row_bounds import RowBounds, private_losses, row_bounds

LARGEST_TARGET = 3.0


def accepted(loss):
    try:
        row_bounds(loss, 3, LARGEST_TARGET)
    except ValueError:
        return False
    return True


PRIVATE = [loss for loss in all_losses() if accepted(loss)]
private_loss = pytest.mark.parametrize("loss", PRIVATE, ids=repr)


# The accountant.


def analytic_delta(epsilon, ratio):
    """Balle and Wang (2018, theorem 8): the exact delta of a Gaussian answer with Delta / sigma = ratio."""
    low = stats.norm.logcdf(-0.5 * ratio - epsilon / ratio)
    return stats.norm.cdf(0.5 * ratio - epsilon / ratio) - math.exp(epsilon + low)


@pytest.mark.parametrize("delta", [1e-5, 1e-8])
@pytest.mark.parametrize("answers", [1, 100])
@pytest.mark.parametrize("rho", [1e-5, 1e-3, 0.02])
def test_epsilon_is_above_the_exact_one_and_near_it(rho, answers, delta):
    total = answers * rho
    epsilon, ratio = epsilon_of(total, delta), math.sqrt(answers) * ratio_of(rho)  # Gaussian answers compose exactly
    exact = brentq(lambda e: analytic_delta(e, ratio) - delta, 0.0, 200.0)
    assert exact <= epsilon <= 1.4 * exact + 0.01
    assert epsilon <= total + 2.0 * math.sqrt(total * math.log(1.0 / delta))  # Bun and Steinke (2016, proposition 1.3)


def test_epsilon_is_the_least_over_orders():
    rho, delta = 0.05, 1e-6
    orders = np.linspace(1.001, 200.0, 400_000)
    each = orders * rho + np.log1p(-1.0 / orders) - np.log(delta * orders) / (orders - 1.0)
    assert epsilon_of(rho, delta) == pytest.approx(each.min(), rel=1e-4)
    assert epsilon_of(0.0, delta) == 0.0


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 8.0, 300.0])
def test_the_budget_is_the_largest_rho(epsilon):
    rho = rho_of(epsilon, 1e-6)
    assert epsilon_of(rho, 1e-6) <= epsilon < epsilon_of(1.001 * rho, 1e-6)


# Noise.


def test_noise_is_normal_and_whole():
    steps = steps_of_noise(200_001)
    np.testing.assert_array_equal(steps, np.rint(steps))
    noise = GRID * steps
    assert stats.kstest(noise, "norm").pvalue > 1e-9
    assert stats.kstest(noise[::2] - noise[1::2].mean(), "norm").pvalue > 1e-9
    assert abs(np.corrcoef(noise[:100_000], noise[100_000:200_000])[0, 1]) < 0.03
    assert np.unique(steps[:1000]).size > 990


def test_last_bits_do_not_show_what_noise_is_added_to():
    sigma, noise = np.array([0.3, 7.0]), steps_of_noise(2)
    for x in (np.array([0.1, 1e-9]), np.array([1.0 / 3.0, -123.456])):
        steps = on_grid(x, sigma, noise) / (sigma * GRID)
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
        np.testing.assert_allclose(on_grid(x, sigma, np.zeros(2)), x, atol=0.5 * GRID * 7.0)


# Rows of bounded norm.


def test_long_rows_are_scaled_down_and_short_ones_stay(rng):
    X = rng.normal(size=(200, 6)) * np.logspace(-3.0, 3.0, 200)[:, None]
    X[7], X[8] = 0.0, [1e200, -1e200, 0.0, 0.0, 0.0, 1e180]
    found = clipped(X, 1.5)
    sizes = np.linalg.norm(found, axis=1)
    assert sizes.max() <= 1.5
    short = np.linalg.norm(np.minimum(np.abs(X), 1e100), axis=1) <= 1.5
    np.testing.assert_array_equal(found[short], X[short])
    np.testing.assert_allclose(sizes[~short], 1.5, rtol=1e-9)
    np.testing.assert_allclose(clipped(sparse.csr_array(X), 1.5).toarray(), found, rtol=1e-12)
    assert clipped(X[:7].astype(np.float32), 1.5).dtype == np.float64


def test_repeated_entries_of_a_sparse_row_are_one_entry():
    X = sparse.csr_array((np.array([0.9, 0.9]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    assert np.linalg.norm(clipped(X, 1.0).toarray()) <= 1.0
    assert X.nnz == 2  # the owner's own data stay


def test_data_that_cannot_be_bounded(rng):
    X, y = rng.normal(size=(200, 2)), np.ones(200)
    settings = Privacy(1.0, 1e-6, 1.0, target_bound=2.0)
    with pytest.raises(DataError, match="not finite"):
        clipped(np.array([[np.nan]]), 1.0)
    with pytest.raises(DataError, match="weights of rows"):
        bmrm.Owner((X, y, None, np.ones(200)), privacy=settings)
    with pytest.raises(DataError, match="targets that are numbers"):
        bmrm.Owner((X, np.full(200, "a")), privacy=settings)
    owner = bmrm.Owner((X, np.full(200, 7)), privacy=settings)
    assert owner.data.y.max() == 2.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a number from 1e-100 to 1e"),
        ({"epsilon": math.inf}, "epsilon must be a number from 1e-100 to 1e"),
        ({"delta": 1.0}, "delta must lie between 0 and 1, got 1.0"),
        ({"row_norm": -1.0}, "row_norm must be a number from 1e-100 to 1e"),
        ({"answers": 0}, "answers must be a whole number of at least 1, got 0"),
        ({"target_bound": "3"}, "target_bound must be a number from 1e-100 to 1e"),
    ],
)
def test_wrong_settings(changed, message):
    with pytest.raises(DataError, match=message):
        Privacy(**({"epsilon": 1.0, "delta": 1e-6, "row_norm": 1.0} | changed))


def test_answers_are_planned_by_public_numbers():
    def planned(n, d, **changed):
        settings = Privacy(**({"epsilon": 1.0, "delta": 1e-6, "row_norm": 2.0} | changed))
        return settings.planned_for(n, d).answers

    assert planned(100, 10) == planned(1000, 10**6) == 30
    assert planned(10**7, 10) == 1000
    assert planned(60_000, 123) == pytest.approx(2 * planned(30_000, 123), abs=1)
    assert planned(30_000, 123, row_norm=9.0) == planned(30_000, 123) < planned(30_000, 123, epsilon=2.0)
    assert planned(10**7, 10, answers=7) == 7
    owner = bmrm.Owner((np.ones((200, 2)), np.ones(200)), privacy=Privacy(1.0, 1e-6, 1.0))
    assert owner.privacy.answers == 30


# How far one row moves a plane.


def classes_of(loss):
    k = len(loss.delta) if getattr(loss, "delta", None) is not None and isinstance(loss, ClassLoss) else 3
    return k if isinstance(loss, ClassLoss) else 1


def targets_of(loss, rng, m):
    if isinstance(loss, ClassLoss):
        return np.append(np.arange(classes_of(loss)), rng.integers(0, classes_of(loss), m - classes_of(loss)))
    y, _ = loss.draw(rng, m)
    return np.clip(3.0 * y, -LARGEST_TARGET, LARGEST_TARGET) if loss.task == "regression" else y


def plane(loss, X, y, w):
    value, a = LinearRisk(X, y, loss, intercept=True, n_threads=1).evaluate(w)
    return a, value - float(a @ w)


def mechanism(loss, n, d, **changed):
    bounds = row_bounds(loss, classes_of(loss), LARGEST_TARGET)
    settings = {"row_norm": 2.0, "intercept": True, "dim": (d + 1) * classes_of(loss), "rho": 1e-3, "answers": 10}
    return Mechanism(bounds, n, **(settings | changed))


@private_loss
def test_neighbors_differ_by_the_sensitivity_at_most(loss, rng):
    n, d = 12, 3
    noise = mechanism(loss, n, d)
    widest = np.zeros(2)
    for trial in range(150):
        X, y = clipped(rng.normal(size=(n, d)) * 5.0, 2.0), targets_of(loss, rng, n)
        w = rng.normal(size=noise.dim)
        w *= (noise.farthest if trial % 3 == 0 else noise.size) * rng.random() / np.linalg.norm(w)
        other, changed = X.copy(), y.copy()
        other[-1] = -X[-1] if trial % 2 else clipped(rng.normal(size=(1, d)) * 5.0, 2.0)
        changed[-1] = targets_of(loss, rng, n)[-1] if loss.needs_targets else y[-1]
        (a, b), (a2, b2) = plane(loss, X, y, w), plane(loss, other, changed, w)
        widest = np.maximum(widest, [np.linalg.norm(a - a2), abs(b - b2)])
    assert widest[0] <= noise.normal_sensitivity
    assert widest[1] <= noise.offset_sensitivity
    # not far below: a bound of several times what happens would be noise for nothing
    assert widest[0] >= 0.4 * noise.normal_sensitivity


def test_the_worst_neighbor_of_the_hinge_reaches_the_bound():
    n, noise = 10, mechanism(bmrm.losses.Hinge(), 10, 1)
    X, y = np.full((n, 1), 0.1), np.append(np.ones(n - 1), -1.0)
    X[-1] = 2.0
    a, _ = plane(bmrm.losses.Hinge(), X, y, np.zeros(2))
    X[-1], y[-1] = 2.0, 1.0
    a2, _ = plane(bmrm.losses.Hinge(), X, y, np.zeros(2))
    assert np.linalg.norm(a - a2) == pytest.approx(noise.normal_sensitivity, rel=1e-12)
    assert np.linalg.norm(a - a2) <= noise.normal_sensitivity


@private_loss
def test_bounds_hold_at_all_scores(loss, rng):
    k = classes_of(loss)
    bounds = row_bounds(loss, k, LARGEST_TARGET)
    for size in (1e-3, 1.0, 10.0, 1e3):
        for _ in range(60):
            f = size * rng.normal(size=(k, k) if k > 1 else 1)
            y = np.arange(k) if k > 1 else targets_of(loss, rng, 4)[-1:]
            targets = loss.encode(y) if loss.needs_targets else np.zeros(1)
            value, slopes = loss.evaluate(f, targets, np.eye(k)[0] if k > 1 else np.ones(1))
            assert np.linalg.norm(slopes) <= bounds.slope * (1.0 + 1e-12)
            height = value - float(np.sum(slopes * f))
            assert bounds.least - 1e-12 * size <= height <= bounds.most + 1e-12 * size


def test_losses_without_bounds_are_refused_with_those_that_have_some():
    refused = {loss.name for loss in all_losses() if loss.name} - {loss.name for loss in PRIVATE}
    assert {"least_squares", "squared_hinge", "exponential", "poisson", "roc_area", "pairwise_rank"} <= refused
    assert set(private_losses()) == {loss.name for loss in PRIVATE}
    with pytest.raises(ValueError, match=r"'exponential' does not bound .* these work: epsilon_insensitive, hinge, .*"):
        row_bounds(bmrm.losses.Exponential(), 1, None)
    with pytest.raises(ValueError, match="needs a bound of the targets"):
        row_bounds(bmrm.losses.Huber(), 1, None)


# The mechanism.


@pytest.mark.parametrize("rho", [1e-5, 1e-2])
def test_an_answer_costs_its_rho(rho):
    noise = mechanism(bmrm.losses.Logistic(), 1000, 30, rho=rho)
    sigma, of_offset = noise.sigmas
    rounding = GRID * math.sqrt(32)
    moved = math.hypot(noise.normal_sensitivity / sigma, noise.offset_sensitivity / of_offset)
    assert 0.5 * (moved + rounding) ** 2 == pytest.approx(rho, rel=1e-9)
    assert (noise.offset_sensitivity / of_offset / moved) ** 2 == pytest.approx(0.1)


def test_planes_have_the_noise_announced():
    noise = mechanism(bmrm.losses.Hinge(), 1000, 3)
    planes = [noise.noisy(np.arange(4.0), 5.0) for _ in range(4000)]
    normals, offsets = np.array([a for a, _ in planes]), np.array([b for _, b in planes])
    np.testing.assert_allclose(normals.std(axis=0), noise.sigmas[0], rtol=0.1)
    assert offsets.std() == pytest.approx(noise.sigmas[1], rel=0.1)
    np.testing.assert_allclose(normals.mean(axis=0), np.arange(4.0), atol=0.1 * noise.sigmas[0])


def test_numbers_beyond_reason_are_refused():
    with pytest.raises(Refused, match="too many for the noise of this budget"):
        _ = mechanism(bmrm.losses.Hinge(), 1000, 3, dim=10**12, rho=1e-6).sigmas
    for slope, height in ((1.0, 1e200), (1e-320, 1e-320)):
        with pytest.raises(Refused, match="this owner accepts numbers between 1e-100 and 1e"):
            _ = Mechanism(RowBounds(slope, 0.0, height, 1.0), 100, 1.0, False, 3, 1e-3, 10).sigmas


# The ledger.


def test_the_budget_ends():
    ledger = Ledger()
    for _ in range(10):
        ledger.spend(0.1, 1.0)
    assert ledger.left(0.1, 1.0) == 0
    with pytest.raises(BudgetSpent, match="after 10 answers"):
        ledger.spend(0.1, 1.0)
    ledger.spend(0.1, 1.2)  # a larger budget goes on
    assert ledger.answers == 11


def test_what_is_spent_survives(tmp_path):
    path = tmp_path / "rows.privacy"
    Ledger(path).spend(0.25, 1.0)
    one, two = Ledger(path), Ledger(path)
    one.spend(0.25, 1.0)
    two.spend(0.25, 1.0)  # shares the file with the other
    assert Ledger(path).left(0.25, 1.0) == one.left(0.25, 1.0) == 1
    one.spend(0.25, 1.0)
    with pytest.raises(BudgetSpent):
        two.spend(0.25, 1.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '{"kind": "other", "version": 1, "rho": 0.0, "answers": 0}',
        '{"kind": "bmrm privacy ledger", "version": 1, "rho": -1.0, "answers": 0}',
        '{"kind": "bmrm privacy ledger", "version": 1, "rho": NaN, "answers": 0}',
    ],
)
def test_a_damaged_ledger_is_no_empty_one(text, tmp_path):
    path = tmp_path / "rows.privacy"
    path.write_text(text)
    with pytest.raises(DataError, match="is not a ledger of privacy"):
        Ledger(path)


def test_a_ledger_that_is_taken_away(tmp_path):
    path = tmp_path / "rows.privacy"
    ledger = Ledger(path)
    ledger.spend(0.25, 1.0)
    path.unlink()
    with pytest.raises(DataError, match="the ledger is gone, after 1 answers"):
        ledger.spend(0.25, 1.0)
    with pytest.raises(DataError):
        Ledger(tmp_path / "absent" / "rows.privacy")
