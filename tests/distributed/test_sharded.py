"""Rows on shards: the same answers as in one place, also where shards are lost on the way; only sums travel."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest
from catalogue import all_losses, parts_of, sample_for, sharded
from scipy import sparse

import bmrm
from bmrm import Problem, Shards, losses, solve
from bmrm.data import Design
from bmrm.parallel import Engine, LocalEngine
from bmrm.parallel.base import shared_out
from bmrm.parallel.local import LocalPlaced
from bmrm.risks import linear_risk
from bmrm.risks.shards import FileShard

every_loss = pytest.mark.parametrize("loss", all_losses(), ids=repr)


class ForgetfulEngine(LocalEngine):
    """Loses a shard now and then, and has it made anew, like an engine whose workers die; all is pickled on the way."""

    def __init__(self, rng, every: int) -> None:
        self.rng, self.every, self.lost = rng, every, 0

    def place(self, makers, work=None):
        makers = pickle.loads(pickle.dumps(makers))
        placed = LocalPlaced([maker() for maker in makers])
        ask = placed._ask

        def forgetful(shards, method, arguments, each):
            if self.rng.integers(self.every) == 0:
                shard = int(self.rng.integers(len(makers)))
                placed._objects[shard] = makers[shard]()
                self.lost += 1
            answers = ask(shards, *pickle.loads(pickle.dumps((method, arguments, each))))
            return pickle.loads(pickle.dumps(answers))

        placed._ask = forgetful
        return placed


@every_loss
def test_same_optimum_as_in_one_place(loss):
    X, y, groups = sample_for(loss)
    one = bmrm.LinearRisk(X, y, loss, groups=groups)
    other = sharded(loss, X, y, groups)
    results = [solve(Problem(risk, "l2", lam=0.05), tol=1e-10) for risk in (one, other)]
    (one_lower, one_upper), (lower, upper) = ((r.certificate.lower, r.certificate.upper) for r in results)
    assert upper - lower <= 1e-9 * max(1.0, abs(upper))
    assert one_upper == pytest.approx(upper, rel=1e-9, abs=1e-12)
    assert one_lower <= upper
    assert lower <= one_upper


@pytest.mark.parametrize("loss", ["hinge", "logistic", "roc_area", "quantile"])
@pytest.mark.parametrize("solver", ["ls_bmrm", "bmrm", "auto"])
def test_lost_shards_are_told_again(loss, solver, binary, rng):
    X, y = binary
    one = solve(Problem(bmrm.LinearRisk(X, y, loss, intercept=loss != "roc_area"), "l2", 0.01), solver, tol=1e-6)
    engine = ForgetfulEngine(rng, every=5)
    shards = Shards.from_arrays(parts_of(X, y), engine)
    risk = linear_risk(shards, y, loss, intercept=loss != "roc_area")
    result = solve(Problem(risk, "l2", 0.01), solver, tol=1e-6)
    assert engine.lost > 3
    assert result.converged
    assert result.certificate.lower <= one.certificate.upper
    assert one.certificate.lower <= result.certificate.upper


def test_only_sums_travel(rng):
    X = rng.normal(size=(5000, 7))
    y = np.sign(X[:, 0] + rng.normal(size=5000))
    shards = Shards.from_arrays(parts_of(X, y, cuts=(2000, 4000)))
    risk, placed = linear_risk(shards, shards.y, "hinge"), shards.placed
    placed.sent = placed.received = placed.calls = 0
    point = risk.touch(np.zeros(7))
    assert placed.calls == 1
    assert placed.sent + placed.received < 3 * 8 * 30
    line = point.toward(np.ones(7))
    line.evaluate(0.5)
    placed.sent = placed.received = 0
    for t in (0.1, 0.2, 0.3):
        line.evaluate(t)
    assert placed.calls == 5
    assert placed.sent + placed.received < 3 * 3 * 8 * 10  # no vector, let alone scores


def test_points_and_lines_are_forgotten_when_nobody_has_them(binary):
    X, y = binary
    shards = Shards.from_arrays(parts_of(X, y))
    risk = linear_risk(shards, y, "logistic")
    for _ in range(3):
        solve(Problem(risk, "l2", 1e-3), "ls_bmrm", tol=1e-8)
    gc.collect()
    risk.evaluate(np.zeros(4))
    (kept,) = shards.placed._objects[0]._risks.values()
    assert len(kept.points) <= 3
    assert len(kept.lines) <= 3
    del risk
    gc.collect()
    shards.placed.call("about")
    assert not shards.placed._objects[0]._risks


def test_weights_and_shards_that_do_not_count(binary):
    X, y = binary
    weight = np.linspace(0.0, 2.0, 90)
    weight[20:55] = 0.0
    one = bmrm.LinearRisk(X, y, "logistic", sample_weight=weight)
    risk = linear_risk(Shards.from_arrays(parts_of(X, y)), y, "logistic", sample_weight=weight)
    w = np.arange(4.0)
    assert risk.evaluate(w)[0] == pytest.approx(one.evaluate(w)[0], rel=1e-12)
    np.testing.assert_allclose(risk.evaluate(w)[1], one.evaluate(w)[1], atol=1e-14)
    assert risk.at(w).plane[1] == pytest.approx(one.at(w).plane[1], rel=1e-9)


def test_queries_without_pairs_in_one_shard(rng):
    X, y, groups = rng.normal(size=(12, 3)), np.tile([0.0, 1.0], 6), np.repeat(np.arange(6), 2)
    y[:4] = 1.0  # the first shard's queries have one grade
    with pytest.warns(UserWarning, match="leaves out"):
        one = bmrm.LinearRisk(X, y, "pairwise_rank", groups=groups)
    shards = Shards.from_arrays(parts_of(X, cuts=(4, 8)))
    with pytest.warns(UserWarning, match="leaves out 2 of 6"):
        risk = linear_risk(shards, y, "pairwise_rank", groups=groups)
    w = rng.normal(size=3)
    assert risk.evaluate(w)[0] == pytest.approx(one.evaluate(w)[0], rel=1e-12)


def test_a_query_in_two_shards_is_refused(rng):
    shards = Shards.from_arrays(parts_of(rng.normal(size=(9, 2)), cuts=(4, 6)))
    with pytest.raises(ValueError, match="query 1 has rows in shard 0 and in shard 1"):
        linear_risk(shards, np.tile([0.0, 1.0, 2.0], 3), "pairwise_rank", groups=np.repeat([0, 1, 2], 3))


def test_different_numbers_of_features_are_said_once(binary):
    X, y = binary
    wide = sparse.csr_array(np.column_stack([X[:40], np.ones(40)]))
    with pytest.warns(UserWarning, match="the shards have 4 to 5 features; taken as 5"):
        shards = Shards.from_arrays([(wide, y[:40]), (X[40:], y[40:])])
    whole = np.vstack([wide.toarray(), np.column_stack([X[40:], np.zeros(50)])])
    np.testing.assert_allclose(Design(shards).dot(np.arange(5.0)), whole @ np.arange(5.0))


def test_labels_must_be_of_one_kind(binary):
    X, y = binary
    with pytest.raises(bmrm.DataError, match="text"):
        _ = Shards.from_arrays([(X[:40], y[:40]), (X[40:], np.array(["a"] * 50))]).y
    with pytest.raises(bmrm.DataError, match="shard 1: has no labels, other shards have"):
        _ = Shards.from_arrays([(X[:40], y[:40]), (X[40:],)]).y


def test_rows_cannot_be_taken_out(binary):
    shards = Shards.from_arrays(parts_of(*binary))
    with pytest.raises(bmrm.DataError, match="single rows cannot be taken out of a Shards"):
        shards[0]
    problem = Problem(linear_risk(shards, shards.y, "hinge"), "l2", 0.1)
    with pytest.raises(ValueError, match="rows"):
        solve(problem, "dual_coordinate")


def test_an_error_of_a_shard_says_which(tmp_path):
    (tmp_path / "good.svm").write_text("1 1:1\n-1 1:2\n")
    (tmp_path / "bad.svm").write_text("1 1:1\n-1 1:x\n")
    with pytest.raises(bmrm.DataError, match=r"bad\.svm.*line 2"):
        Shards.from_files([tmp_path / "good.svm", tmp_path / "bad.svm"])
    (tmp_path / "empty.svm").write_text("")
    with pytest.raises(bmrm.DataError, match=r"empty\.svm: no examples"):
        Shards.from_files([tmp_path / "good.svm", tmp_path / "empty.svm"])

    placed = LocalEngine().place([FileShard(str(tmp_path / "good.svm"))])
    with pytest.raises(AttributeError) as found:
        placed.call("no_such_method")
    assert "shard 0" in found.value.__notes__[0]


def test_versions_must_agree(binary, monkeypatch):
    X, y = binary
    shards = Shards.from_arrays(parts_of(X, y))
    monkeypatch.setattr(bmrm, "__version__", "9.9")
    about = shards.placed.call("about")
    monkeypatch.undo()
    monkeypatch.setattr(type(shards.placed._objects[0]), "about", lambda self: about[0])
    with pytest.raises(bmrm.parallel.EngineError, match=r"has version 9\.9 of bmrm"):
        Shards(shards.placed)


@pytest.mark.parametrize("chosen", [losses.StructuredLog, losses.StructuredHinge])
@pytest.mark.parametrize("weighted", [False, True])
def test_structured(chosen, weighted, rng):
    model = bmrm.ChainModel(n_labels=3, n_attributes=2)
    X = [rng.normal(size=(n, 2)) for n in (3, 1, 4, 2, 5, 2)]
    y = [rng.integers(3, size=len(x)).tolist() for x in X]
    weight = rng.uniform(0.5, 2.0, size=6) if weighted else None
    one = bmrm.StructuredRisk(X, y, chosen(model), weight)
    cut = [slice(0, 1), slice(1, 5), slice(5, 6), slice(6, 6)]
    engine = ForgetfulEngine(rng, every=4)
    placed = Shards.empty(4, engine).placed
    weights = None if weight is None else [weight[c] for c in cut]
    other = bmrm.ShardedStructuredRisk(placed, [X[c] for c in cut], [y[c] for c in cut], chosen(model), weights)
    w = rng.normal(size=one.dim)
    assert other.evaluate(w)[0] == pytest.approx(one.evaluate(w)[0], rel=1e-12)
    results = [solve(Problem(risk, "l2", 0.1), tol=1e-8) for risk in (one, other)]
    assert all(result.converged for result in results)
    assert results[0].certificate.upper == pytest.approx(results[1].certificate.upper, rel=1e-7)
    assert engine.lost > 0


def test_labeler_on_workers(rng):
    X = [[{"word": str(rng.integers(5)), "long": bool(rng.integers(2))} for _ in range(n)] for n in (3, 1, 4, 2, 6)]
    y = [["odd" if int(token["word"]) % 2 else "even" for token in x] for x in X]
    weight = [1.0, 2.0, 0.0, 1.0, 1.0]
    one = bmrm.SequenceLabeler(lam=0.01, tol=1e-8).fit(X, y, weight)
    other = bmrm.SequenceLabeler(lam=0.01, tol=1e-8).fit(X, y, weight, engine=LocalEngine())
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-7)
    assert other.predict(X) == one.predict(X)
    assert len(other.history_[-1].busy) == 2


def test_path_keeps_planes(binary):
    X, y = binary
    lams = [0.1, 0.03, 0.01]
    whole = bmrm.path(bmrm.LinearRisk(X, y, "hinge"), "l2", lams, tol=1e-6)
    shards = Shards.from_arrays(parts_of(X, y))
    other = bmrm.path(linear_risk(shards, y, "hinge"), "l2", lams, tol=1e-6)
    for one, two in zip(whole, other):
        assert two.converged
        assert two.certificate.upper == pytest.approx(one.certificate.upper, rel=2e-6)


ESTIMATORS = [
    (bmrm.LinearClassifier(), "binary"),
    (bmrm.LinearClassifier(loss="logistic"), "classes"),
    (bmrm.LinearClassifier(loss="squared_hinge", multiclass="one_vs_rest"), "classes"),
    (bmrm.LinearRegressor(loss="quantile"), "numbers"),
    (bmrm.LinearRegressor(loss="least_squares", regularizer="l1"), "numbers"),
    (bmrm.ScoreClassifier(score="roc_area"), "binary"),
    (bmrm.ScoreClassifier(score="f1"), "binary"),
    (bmrm.OrdinalRegressor(), "classes"),
    (bmrm.Ranker(), "queries"),
    (bmrm.NoveltyDetector(features="linear"), "none"),
    (bmrm.MultilabelClassifier(), "sets"),
]


@pytest.mark.parametrize(("estimator", "kind"), ESTIMATORS, ids=lambda each: str(each))
def test_estimators_take_shards(estimator, kind, rng):
    X = rng.normal(size=(60, 3)) + (3.0 if kind == "none" else 0.0)  # a linear novelty score needs an origin outside
    f = X @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=60)
    y = {
        "binary": np.where(f > 0.0, "yes", "no"),
        "classes": np.digitize(f, [-0.5, 0.5]),
        "queries": np.digitize(f, [-0.5, 0.5]).astype(float),
        "numbers": f,
        "none": None,
        "sets": np.column_stack([f > 0.0, f <= 0.0, (X[:, 0] > 0.0) & (f > 0.2)]).astype(float),
    }[kind]
    groups = np.repeat(np.arange(12), 5) if kind == "queries" else None
    columns = [column for column in (X, y, groups) if column is not None]
    shards = Shards.from_arrays(parts_of(*columns, cuts=(20, 35)))
    options = {"qid": groups} if kind == "queries" else {}
    one = estimator.set_params(tol=1e-6).fit(X, *([] if y is None else [y]), **options)
    expected = one.predict(X)
    coef = np.array(one.coef_)
    other = estimator.fit(shards)
    assert other.converged_
    np.testing.assert_allclose(other.coef_, coef, atol=0.05 * (1e-2 + np.abs(coef).max()))
    predicted = other.predict(shards)
    if kind == "sets":  # many constants of the labels are equally good
        assert predicted.shape == expected.shape
    elif kind in ("numbers", "queries"):
        np.testing.assert_allclose(predicted, expected, atol=0.1)
    else:
        assert np.mean(predicted == expected) > 0.9


def test_shared_out_is_balanced(rng):
    work = rng.pareto(1.5, size=200) + 0.1
    owner = np.array(shared_out(work, 4))
    loads = [work[owner == worker].sum() for worker in range(4)]
    assert max(loads) <= max(1.05 * np.mean(loads), work.max())
    assert shared_out([0.0, 0.0, 0.0, 0.0], 2) in ([0, 1, 0, 1], [1, 0, 1, 0])


def test_engine_by_name():
    with bmrm.parallel.engine("local") as engine:
        assert isinstance(engine, Engine)
    with pytest.raises(ValueError, match="engine must be one of local, mpi, dask, got 'ray'"):
        bmrm.parallel.engine("ray")
