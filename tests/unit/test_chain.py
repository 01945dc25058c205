"""Chains against brute force: huge weights, gradients, slack, costs, threads, and what is said about bad input."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

import bmrm
from bmrm import ChainModel, Sequences, StructuredRisk, losses
from bmrm.structured import MODELS


def drawn(rng, k, d, lengths, density=0.6):
    """Return sparse tokens and labels."""
    T = int(np.sum(lengths))
    tokens = sparse.csr_array(rng.normal(size=(T, d)) * (rng.random((T, d)) < density))
    X = Sequences(tokens, np.concatenate([[0], np.cumsum(lengths)]))
    return X, rng.integers(0, k, size=T)


def plain_scores(model, x, w):
    """Return the emission scores (T, k), transitions, start and end of one dense x, by loops."""
    k, blocks = model.n_labels, model.blocks()
    f = np.zeros((len(x), k))
    for a, c, weight in zip(*model.emission_table(w)):
        f[:, c] += x[:, a] * weight
    ends = [w[blocks[name]] if blocks[name].stop > blocks[name].start else np.zeros(k) for name in ("start", "end")]
    return f, model.transition_table(w), *ends


def by_logs(f, T, start, end):
    """Return log Z and marginals by the textbook recursion, in logarithms."""
    n, k = f.shape
    lse = np.logaddexp.reduce
    A, B = np.zeros((n, k)), np.zeros((n, k))
    A[0], B[-1] = start + f[0], end
    for t in range(1, n):
        A[t] = f[t] + lse(A[t - 1][:, None] + T, axis=0)
    for t in range(n - 2, -1, -1):
        B[t] = lse(T + f[t + 1] + B[t + 1], axis=1)
    log_z = lse(A[-1] + end)
    return log_z, np.exp(A + B - log_z)


def log_loss(f, T, start, end, y):
    own = f[np.arange(len(y)), y].sum() + T[y[:-1], y[1:]].sum() + start[y[0]] + end[y[-1]]
    return by_logs(f, T, start, end)[0] - own


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 22, 33, 40, 70])
@pytest.mark.parametrize("scale", [0.3, 5.0, 1e3, 1e5])
def test_sums_with_any_weights(k, scale, rng):
    """Scaled exponentials and logarithms tell the same, however large the weights are."""
    X, y = drawn(rng, k, 3, [1, 2, 7, 30])
    model = ChainModel(k, 3)
    w = scale * rng.normal(size=model.dim)
    examples = model.encode(X, y)
    found = model.marginals(examples, w, 1)
    risk = StructuredRisk(X, y, losses.StructuredLog(model), n_threads=1)
    expected = []
    for i in range(len(X)):
        scores = plain_scores(model, X[i].toarray(), w)
        np.testing.assert_allclose(found[i], by_logs(*scores)[1], atol=1e-10 * max(1.0, scale))
        expected.append(log_loss(*scores, y[X.offsets[i] : X.offsets[i + 1]]))
    value, gradient = risk.evaluate(w)
    assert value == pytest.approx(np.mean(expected), rel=1e-11, abs=1e-11 * scale)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("part", ["emissions", "transitions", "start", "end"])
@pytest.mark.parametrize("scale", [200.0, 1e3, 1e4])
def test_one_huge_part(part, scale, rng):
    """Only one kind of weights is huge: rows are scaled, tables make the sums go over to logarithms."""
    k, d = 4, 3
    X, y = drawn(rng, k, d, [1, 4, 9, 2])
    model = ChainModel(k, d)
    w = rng.normal(size=model.dim)
    w[model.blocks()[part]] *= scale
    examples = model.encode(X, y)
    found, slopes = model.marginals(examples, w, 1), model.log(examples, w, np.full(4, 0.25), 1)
    expected = 0.0
    for i in range(len(X)):
        scores = plain_scores(model, X[i].toarray(), w)
        np.testing.assert_allclose(found[i], by_logs(*scores)[1], atol=1e-9)
        expected += 0.25 * log_loss(*scores, y[X.offsets[i] : X.offsets[i + 1]])
    assert slopes[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("model", ChainModel.examples(), ids=lambda model: f"k{model.n_labels}-dim{model.dim}")
@pytest.mark.parametrize("scale", [0.5, 1e3])
def test_gradient_is_that_of_differences(model, scale, rng):
    X, y = model.draw(rng, 4)
    risk = StructuredRisk(X, y, losses.StructuredLog(model), weight=[1.0, 2.0, 0.0, 0.5], n_threads=1)
    w = scale * rng.normal(size=model.dim)
    value, gradient = risk.evaluate(w)
    h = 1e-5
    differences = [(risk.evaluate(w + h * e)[0] - risk.evaluate(w - h * e)[0]) / (2 * h) for e in np.eye(model.dim)]
    np.testing.assert_allclose(gradient, differences, atol=1e-6 * max(1.0, scale * 1e-2))
    assert value >= 0.0


@pytest.mark.parametrize("scale", [0.0, 0.4, 30.0])
def test_slack_is_exact(scale, rng):
    model = ChainModel(3, 2, costs=[2.0, 2.0, 2.0])
    X, y = model.draw(rng, 6)
    w = scale * rng.normal(size=model.dim)
    risk = StructuredRisk(X, y, losses.StructuredHinge(model, "slack"), n_threads=1)
    expected = []
    for x, true in zip(X, y):
        f, T, start, end = plain_scores(model, x, w)

        def score(z, f=f, T=T, start=start, end=end):
            return f[np.arange(len(z)), z].sum() + T[z[:-1], z[1:]].sum() + start[z[0]] + end[z[-1]]

        outputs = [np.array(z) for z in product(range(3), repeat=len(true))]
        expected.append(max(2.0 * (z != true).sum() * (1.0 + score(z) - score(true)) for z in outputs))
    assert risk.evaluate(w)[0] == pytest.approx(np.mean(expected), rel=1e-12)


def test_slack_with_unequal_costs_is_refused(rng):
    model = ChainModel(2, 1, costs=[1.0, 2.5])
    with pytest.raises(ValueError, match="exact only where all cost the same"):
        losses.StructuredHinge(model, "slack")
    with pytest.raises(ValueError, match="exact only"):
        model.slack_argmax(np.ones((2, 1)), [0, 1], np.zeros(model.dim))


@pytest.mark.parametrize("loss", ["log", "margin", "slack"])
@pytest.mark.parametrize("pairs", [0, 2])
def test_threads_do_not_change_a_bit(loss, pairs, rng):
    k, d, lengths = 5, 40, rng.integers(1, 12, size=700)
    X, y = drawn(rng, k, d, lengths, 0.1)
    if pairs:
        X = Sequences(X.tokens, X.offsets, rng.normal(size=(X.tokens.shape[0], pairs)))
    model = ChainModel.seen(X, y, k, pair_attributes=pairs)
    made = losses.StructuredLog(model) if loss == "log" else losses.StructuredHinge(model, loss)
    w, w2 = rng.normal(size=(2, model.dim))
    answers = []
    for n_threads in (1, 2, 4):
        risk = StructuredRisk(X, y, made, n_threads=n_threads)
        value, a = risk.evaluate(w)
        answers.append(np.concatenate([[value], a, risk.at(w).toward(w2).evaluate(0.25)]))
    np.testing.assert_array_equal(answers[1], answers[0])
    np.testing.assert_array_equal(answers[2], answers[0])


@pytest.mark.parametrize("loss", ["log", "margin", "slack"])
def test_layouts_agree(loss, rng):
    """Dense and sparse tokens, lists and Sequences, all pairs and a pattern that has them all."""
    k, d = 3, 4
    X, y = drawn(rng, k, d, [3, 1, 5])
    lists = [X[i].toarray() for i in range(3)], np.split(y, X.offsets[1:-1])
    pattern = np.arange(d + 1) * k, np.tile(np.arange(k), d)
    values = []
    for sequences, labels in ((X, y), lists, ([X[i] for i in range(3)], lists[1])):
        for options in ({}, {"emissions": pattern}):
            model = ChainModel(k, d, **options)
            made = losses.StructuredLog(model) if loss == "log" else losses.StructuredHinge(model, loss)
            w = np.random.default_rng(1).normal(size=model.dim)
            value, a = StructuredRisk(sequences, labels, made, n_threads=1).evaluate(w)
            values.append(np.r_[value, a])
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], atol=1e-12)


def test_seen_weights_are_those_of_the_examples():
    X = [np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), np.array([[1.0, 1.0, 0.0]])]
    model = ChainModel.seen(X, [[0, 2], [1]], 3, start_end=False)
    attributes, labels, _ = model.emission_table(np.zeros(model.dim))
    assert list(zip(attributes, labels)) == [(0, 0), (0, 1), (1, 1), (1, 2)]
    assert model.weights.transitions.tolist() == [[False, False, True], [False] * 3, [False] * 3]
    w = np.arange(1.0, 6.0)
    assert model.transition_table(w)[0, 2] == 5.0
    assert model.blocks()["transitions"] == slice(4, 5)
    assert model.argmax(X[0], w).tolist() == [0, 2]


def test_a_search_along_a_line_costs_no_products(rng):
    X, y = drawn(rng, 3, 4, [3, 5])
    problem = bmrm.Problem(StructuredRisk(X, y, losses.StructuredLog(ChainModel(3, 4))), "l2", 0.1)
    result = bmrm.solve(problem, "lbfgs", tol=1e-8)
    assert result.converged
    assert result.passes <= result.iterations + 2


@pytest.mark.parametrize("solver", ["lbfgs", "ls_bmrm", "bmrm"])
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_a_run_goes_on_where_it_stopped(solver, loss, rng):
    if (solver, loss) == ("lbfgs", "hinge"):
        return
    X, y = drawn(rng, 3, 4, [3, 5, 2])
    kind = {"log": losses.StructuredLog, "hinge": losses.StructuredHinge}[loss]
    problem = bmrm.Problem(StructuredRisk(X, y, kind(ChainModel(3, 4))), "l2", 0.05)
    whole = bmrm.solve(problem, solver, tol=1e-12, max_iter=8)
    part = bmrm.solve(problem, solver, tol=1e-12, max_iter=3)
    rest = bmrm.solve(problem, solver, tol=1e-12, max_iter=5, start=part)
    assert rest.history[-1].upper == pytest.approx(whole.history[len(whole.history) - 1].upper, rel=1e-6)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([np.ones((2, 1)), np.ones((0, 1))], [[0, 1], []], "example 1: the sequence is empty"),
        ([np.ones((2, 1)), []], [[0, 1], []], "example 1: the sequence is empty"),
        ([], [], "there are no sequences"),
        ([np.ones((2, 1)), np.ones((1, 2))], [[0, 1], [0]], "example 1: tokens have 2 attributes"),
        ([np.ones((2, 3))], [[0, 1]], "tokens have 3 attributes, expected 1"),
        ([np.ones((2, 1))], [[0]], "example 0: x has 2 tokens and y has labels of shape"),
        ([np.ones((2, 1))], [[0, 1], [0]], "X has 1 examples and y has 2"),
        ([np.ones((1, 1)), np.ones((2, 1))], [[0], [0, 3]], "example 1: label 3 lies outside of 0 to 1"),
        ([np.ones((1, 1))], [[-1]], "example 0: label -1"),
        ([np.ones((1, 1))], [[0.5]], "labels must be integers"),
        ([np.ones((1, 1)), np.array([[1.0], [np.nan]])], [[0], [0, 1]], "example 1: tokens have a value .* token 1"),
        ([np.ones(2)], [[0, 1]], "must be a matrix"),
        ([(np.ones((2, 1)), np.ones((2, 1)))], [[0, 1]], "steps have 1 attributes"),
        ([(np.ones((2, 1)), np.ones((1, 1)))], [[0, 1]], "different numbers of rows"),
        ([np.ones((2, 1))], np.array([0, 1, 0]), "X has 2 tokens and y has 3 labels"),
    ],
)
def test_bad_sequences(X, y, message):
    with pytest.raises(ValueError, match=message):
        StructuredRisk(X, y, losses.StructuredLog(ChainModel(2, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_labels": 0}, "n_labels"),
        ({"n_attributes": -1}, "n_attributes"),
        ({"emissions": ([0, 1], [0])}, "indptr of 3"),
        ({"emissions": ([0, 1, 2], [0, 5])}, "label 5"),
        ({"emissions": ([0, 2, 2], [1, 0])}, "must increase"),
        ({"transitions": np.ones((2, 2))}, "true and false"),
        ({"costs": [1.0]}, "costs must be 2 numbers"),
        ({"costs": [-1.0, 1.0]}, "at least 0"),
        ({"costs": [[1.0, 1.0], [1.0, 0.0]]}, "diagonal"),
        ({"pair_attributes": 1.5}, "pair_attributes"),
    ],
)
def test_bad_models(options, message):
    with pytest.raises(ValueError, match=message):
        ChainModel(**({"n_labels": 2, "n_attributes": 2} | options))


def test_chains_are_registered():
    assert MODELS["chain"] is ChainModel
