"""The linear risk of every loss: layouts, threads, offsets, weights and lines all tell the same story."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LAYOUTS, PLACES, all_losses, data_for, risk_for, sample_for, scalar_losses

from bmrm import LinearRisk, losses
from bmrm.testing import check_risk

every_loss = pytest.mark.parametrize("loss", all_losses(), ids=repr)
every_row_loss = pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.couples == "row"], ids=repr)
every_scalar_loss = pytest.mark.parametrize("loss", scalar_losses(), ids=repr)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


class PythonHuber(losses.Loss):
    """A loss without a compiled counterpart."""

    def evaluate(self, scores, targets, weight):
        r = scores - targets
        value = np.where(np.abs(r) < 1.0, 0.5 * r**2, np.abs(r) - 0.5)
        return float(weight @ value), weight * np.clip(r, -1.0, 1.0)


def assert_same(one, other, w, w2, rel):
    """Value, subgradient and a line of two risks agree."""
    for risk_w in (w, w2):
        (value, a), (value2, a2) = one.evaluate(risk_w), other.evaluate(risk_w)
        assert value2 == pytest.approx(value, rel=rel, abs=rel)
        np.testing.assert_allclose(a2, a, rtol=0.0, atol=rel * (1.0 + np.abs(a).max()))
    lines = [risk.at(w).toward(w2) for risk in (one, other)]
    for t in (0.0, 0.3, 1.0):
        values = [line.evaluate(t)[0] for line in lines]
        assert values[1] == pytest.approx(values[0], rel=rel, abs=rel)


@every_loss
@pytest.mark.parametrize("layout", PLACES)
def test_rules(loss, layout):
    check_risk(risk_for(loss, layout))


def test_rules_without_kernel():
    X, y = data_for(losses.Huber())
    risk = LinearRisk(X, y, PythonHuber())
    check_risk(risk)
    w = np.arange(4.0)
    assert_same(LinearRisk(X, y, losses.Huber()), risk, w, -w, 1e-13)


def test_rules_find_a_risk_that_is_not_convex():
    class Wavy:
        dim = 2

        def evaluate(self, w):
            return 2.0 + np.sin(w).sum(), np.cos(w)

    with pytest.raises(AssertionError, match="not below the risk"):
        check_risk(Wavy())


@every_loss
@pytest.mark.parametrize("layout", ["dense32", "csr32", "csr64", "shards"])
def test_layouts_agree(loss, layout, rng):
    dense, other = risk_for(loss), risk_for(loss, layout)
    assert_same(dense, other, rng.normal(size=dense.dim), rng.normal(size=dense.dim), 1e-12)


@every_loss
def test_float32_data(loss, rng):
    X, (y, groups) = rng.normal(size=(50, 6)), loss.draw(rng, 50)
    one, other = (LinearRisk(Z, y, loss, groups=groups) for Z in (X, X.astype(np.float32)))
    assert_same(one, other, 0.5 * rng.normal(size=one.dim), 0.5 * rng.normal(size=one.dim), 1e-5)


@every_loss
@pytest.mark.parametrize("layout", ["dense64", "csr32"])
def test_threads_do_not_change_a_bit(loss, layout, rng):
    m, d = 6000, 20
    X = LAYOUTS[layout](rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.3))
    y, groups = loss.draw(rng, m)
    w, w2 = 0.1 * rng.normal(size=(2, LinearRisk(X, y, loss, groups=groups).dim))
    answers = []
    for n_threads in (1, 2, 4):
        risk = LinearRisk(X, y, loss, groups=groups, n_threads=n_threads)
        value, a = risk.evaluate(w)
        point = risk.at(w)
        line = point.toward(w2)
        answers.append(np.concatenate([[value, point.value], a, point.subgradient, line.evaluate(0.25)]))
    np.testing.assert_array_equal(answers[1], answers[0])
    np.testing.assert_array_equal(answers[2], answers[0])


@pytest.mark.parametrize("loss", [each for each in all_losses() if not isinstance(each, losses.VectorLoss)], ids=repr)
def test_offset_shifts_scores(loss, rng):
    X, y, groups = sample_for(loss)
    offset = rng.normal(size=X.shape[0])
    shifted = LinearRisk(X, y, loss, groups=groups, offset=offset)
    column = LinearRisk(np.column_stack([offset, X]), y, loss, groups=groups)
    for w in rng.normal(size=(3, shifted.dim)):
        (value, a), (value2, a2) = shifted.evaluate(w), column.evaluate(np.concatenate([[1.0], w]))
        assert value == pytest.approx(value2, rel=1e-12)
        np.testing.assert_allclose(a, a2[1:], atol=1e-12)
        assert shifted.at(w).value == pytest.approx(value2, rel=1e-12)


@every_loss
@every_layout
def test_intercept_is_a_column_of_ones(loss, layout, rng):
    if loss.learns_offset:
        return
    X, y, groups = sample_for(loss)
    if loss.shift_slope(risk_for(loss).targets):
        with pytest.raises(ValueError, match="takes no intercept"):
            LinearRisk(LAYOUTS[layout](X), y, loss, groups=groups, intercept=True)
        return
    one = LinearRisk(LAYOUTS[layout](X), y, loss, groups=groups, intercept=True)
    other = LinearRisk(np.column_stack([X, np.ones(X.shape[0])]), y, loss, groups=groups)
    assert set(one.unpenalized) <= set(range(X.shape[1] * one.n_outputs, one.dim))
    assert isinstance(loss, losses.VectorLoss) or one.unpenalized == (X.shape[1],)
    assert_same(one, other, rng.normal(size=one.dim), rng.normal(size=one.dim), 1e-12)


@pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.weighted_by == "row"], ids=repr)
@pytest.mark.parametrize("layout", ["dense64", "csr32"])
def test_weights_are_repetitions(loss, layout, rng):
    X, y = data_for(loss)
    weight = rng.integers(0, 4, size=X.shape[0])
    weight[:2] = [0, 3]
    one = LinearRisk(LAYOUTS[layout](X), y, loss, sample_weight=weight)
    other = LinearRisk(LAYOUTS[layout](np.repeat(X, weight, axis=0)), np.repeat(y, weight, axis=0), loss)
    assert_same(one, other, rng.normal(size=one.dim), rng.normal(size=one.dim), 1e-12)


@pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.weighted_by == "group"], ids=repr)
def test_weights_of_queries_are_repetitions(loss, rng):
    X, y, groups = sample_for(loss)
    times = rng.permutation([0, 1, 3])[groups]
    copies = [(groups == q) & (times > copy) for copy in range(3) for q in range(3)]
    rows = np.concatenate([np.flatnonzero(copy) for copy in copies])
    names = np.repeat(np.arange(len(copies)), [copy.sum() for copy in copies])
    one = LinearRisk(X, y, loss, sample_weight=times, groups=groups)
    other = LinearRisk(X[rows], y[rows], loss, groups=names)
    assert_same(one, other, rng.normal(size=one.dim), rng.normal(size=one.dim), 1e-12)


@every_scalar_loss
def test_extreme_is_the_steepest_subgradient(loss, rng):
    """Scores are put on likely kinks by the offset, where w = 0 has many subgradients."""
    X, y = data_for(loss)
    targets = loss.encode(y)
    marks = [v for v in vars(loss).values() if isinstance(v, float) and np.isfinite(v)]
    shifts = rng.choice([0.0, *marks, *(-v for v in marks)], size=targets.size)
    shifts = np.where((targets + shifts) - targets == shifts, shifts, 0.0)  # on the kink, not next to it
    kinks = [loss.rho if loss.name == "novelty" else 0.0 * targets, targets + shifts, shifts, targets * (1 + shifts)]
    for offset in kinks:
        risk = LinearRisk(X, y, loss, offset=np.broadcast_to(offset, targets.shape))
        point = risk.at(np.zeros(risk.dim))
        for d in rng.normal(size=(3, risk.dim)):
            _, left, right = point.toward(d).evaluate(0.0)
            g = point.extreme(d)
            assert g @ d == pytest.approx(right, rel=1e-10, abs=1e-10)
            assert point.extreme(-d) @ d == pytest.approx(left, rel=1e-10, abs=1e-10)
            slope = (risk.evaluate(1e-7 * d)[0] - point.value) / 1e-7
            assert g @ d == pytest.approx(slope, rel=1e-4, abs=1e-4)
            for w in 0.3 * rng.normal(size=(5, risk.dim)):
                assert risk.evaluate(w)[0] >= point.value + g @ w - 1e-12


@pytest.mark.parametrize("loss", [losses.SquaredHinge(), losses.Logistic(), losses.LeastSquares()], ids=repr)
@pytest.mark.parametrize("length", [1e-3, 1e-6, 1e-9])
def test_long_steps_on_short_lines_keep_their_digits(loss, length, rng):
    """A search direction may be tiny and the step huge: the scores must still be those of the point's w."""
    risk = risk_for(loss)
    w, d = 10.0 * rng.normal(size=(2, risk.dim))
    point = risk.at(w).toward(w + length * d).at(1.0 / length)
    value, a = risk.evaluate(point.w)
    assert point.value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(point.subgradient, a, rtol=1e-9, atol=1e-9)


def test_hinge_at_its_kink_has_two_slopes():
    risk = LinearRisk([[1.0], [-1.0]], [1, -1], losses.Hinge())
    value, left, right = risk.at(np.zeros(1)).toward(np.ones(1)).evaluate(1.0)
    assert (value, left, right) == (0.0, -1.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": [1.0]}, "sample_weight must have one number for each of the 2 rows"),
        ({"sample_weight": [1.0, -1.0]}, "row 1 is -1"),
        ({"sample_weight": [0.0, 0.0]}, "all sample weights are 0"),
        ({"sample_weight": [1.0, np.nan]}, "row 1 is nan"),
        ({"offset": [1.0, np.inf]}, "row 1 is inf"),
        ({"offset": [1.0]}, "offset must have one number"),
        ({"groups": [0, 0]}, "groups"),
        ({"n_threads": 0}, "n_threads"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearRisk(np.eye(2), [1, -1], losses.Hinge(), **arguments)


def test_bad_targets_and_points():
    with pytest.raises(ValueError, match="needs targets"):
        LinearRisk(np.eye(2), None, losses.Hinge())
    with pytest.raises(ValueError, match="2 rows, but there are 3 targets"):
        LinearRisk(np.eye(2), [1, -1, 1], losses.Hinge())
    with pytest.raises(ValueError, match="no rows"):
        LinearRisk(np.empty((0, 2)), [], losses.LeastSquares())
    with pytest.raises(ValueError, match="shape"):
        LinearRisk(np.eye(2), [1, -1], losses.Hinge()).evaluate(np.zeros(3))
