"""Shards on Dask workers: the same answers as in one place, from arrays, files, Dask arrays and data frames."""

from __future__ import annotations

import importlib
import json
import time

import numpy as np
import pandas as pd
import pytest
from catalogue import all_losses, parts_of, sample_for, sharded
from clusters import WITNESS, cluster
from commands import bad, good
from scipy import sparse

import bmrm
from bmrm import Checkpoint, DataError, Problem, Shards, losses, solve
from bmrm.parallel import DaskEngine, EngineError
from bmrm.risks import linear_risk

da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'bmrm[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="needs Dask and pandas")

# One loss of each kind: a row with a kink, a smooth row, classes, sets of labels, queries, all rows.
OPTIMA = [
    losses.Hinge(),
    losses.Logistic(),
    losses.Softmax(),
    losses.MultilabelHinge(n_classes=3),
    losses.PairwiseRank(),
    losses.RocArea(),
    losses.FBeta(),
    losses.Ordinal(),
]


@pytest.fixture(scope="module")
def client():
    with cluster(2) as found:
        yield found


@pytest.fixture(scope="module")
def engine(client):
    with DaskEngine(client) as found:
        yield found


@pytest.fixture
def current(client):
    """The client that Dask's collections find."""
    with client.as_current():
        yield client


@pytest.mark.parametrize("loss", all_losses(), ids=repr)
def test_same_value_and_subgradient(loss, engine):
    X, y, groups = sample_for(loss)
    one, other = bmrm.LinearRisk(X, y, loss, groups=groups), sharded(loss, X, y, groups, engine)
    w = np.random.default_rng(3).normal(size=one.dim)
    (value, slope), (expected, expected_slope) = other.evaluate(w), one.evaluate(w)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slope, expected_slope, atol=1e-12 * max(1.0, np.abs(expected_slope).max()))


@pytest.mark.parametrize("loss", OPTIMA, ids=repr)
def test_same_optimum(loss, engine):
    X, y, groups = sample_for(loss)
    one, other = bmrm.LinearRisk(X, y, loss, groups=groups), sharded(loss, X, y, groups, engine)
    expected, result = (solve(Problem(risk, "l2", lam=0.05), tol=1e-10) for risk in (one, other))
    assert result.converged
    assert result.certificate.upper == pytest.approx(expected.certificate.upper, rel=1e-9)
    assert result.certificate.lower <= expected.certificate.upper
    assert len(result.history[-1].busy) == 3


@pytest.mark.parametrize("chosen", [losses.StructuredLog, losses.StructuredHinge])
def test_structured(chosen, engine, rng):
    model = bmrm.ChainModel(n_labels=3, n_attributes=2)
    X = [rng.normal(size=(n, 2)) for n in (3, 1, 4, 2, 5, 2)]
    y = [rng.integers(3, size=len(x)).tolist() for x in X]
    cut = [slice(0, 2), slice(2, 6)]
    placed = Shards.empty(2, engine).placed
    other = bmrm.ShardedStructuredRisk(placed, [X[c] for c in cut], [y[c] for c in cut], chosen(model))
    one = bmrm.StructuredRisk(X, y, chosen(model))
    w = rng.normal(size=one.dim)
    assert other.evaluate(w)[0] == pytest.approx(one.evaluate(w)[0], rel=1e-12)
    expected, result = (solve(Problem(risk, "l2", 0.1), tol=1e-10) for risk in (one, other))
    assert result.converged
    assert result.certificate.upper == pytest.approx(expected.certificate.upper, rel=1e-9)


def test_l1(engine, binary):
    X, y = binary
    one, other = bmrm.LinearRisk(X, y, "logistic"), linear_risk(Shards.from_arrays(parts_of(X), engine), y, "logistic")
    expected, result = (solve(Problem(risk, "l1", 0.05), tol=1e-8) for risk in (one, other))
    assert result.converged
    assert result.certificate.upper == pytest.approx(expected.certificate.upper, rel=1e-7)


def test_path_and_warm_start_reuse_planes(engine, binary):
    X, y = binary
    risk = linear_risk(Shards.from_arrays(parts_of(X), engine), y, "hinge")
    lams = [0.1, 0.03, 0.01]
    expected = bmrm.path(bmrm.LinearRisk(X, y, "hinge"), "l2", lams, tol=1e-8)
    for one, other in zip(expected, bmrm.path(risk, "l2", lams, tol=1e-8)):
        assert other.converged
        assert other.certificate.upper == pytest.approx(one.certificate.upper, rel=1e-7)
    cold = solve(Problem(risk, "l2", 0.01), tol=1e-8)
    warm = solve(Problem(risk, "l2", 0.01), tol=1e-8, start=cold)
    assert warm.converged
    assert warm.iterations <= 2 < cold.iterations


def test_checkpoint_and_resume_bit_for_bit(engine, binary, tmp_path):
    X, y = binary

    def run(max_iter, checkpoint):
        risk = linear_risk(Shards.from_arrays(parts_of(X), engine), y, "hinge", intercept=True)
        return solve(Problem(risk, "l2", 1e-3), "ls_bmrm", tol=1e-9, max_iter=max_iter, checkpoint=checkpoint)

    whole = run(30, None)
    run(7, Checkpoint(tmp_path / "run"))
    resumed = run(30, Checkpoint(tmp_path / "run", resume=True))
    assert resumed.iterations == whole.iterations > 7
    assert resumed.w.tobytes() == whole.w.tobytes()
    assert resumed.certificate.lower == whole.certificate.lower


def test_answers_are_in_the_order_of_the_shards(engine):
    placed = engine.place([WITNESS] * 5, work=[5.0, 1.0, 1.0, 4.0, 1.0])
    assert placed.call("echo", each=[((k,),) for k in range(5)]) == [[k] for k in range(5)]
    assert placed.call("echo", each=[((7,),), ((8,),)], only=[3, 1]) == [[7], [8]]
    pids = placed.call("pid")
    assert len(set(pids)) == 2
    assert pids[0] != pids[3]  # the two large ones
    assert placed.calls == 3
    assert len(set(placed.workers())) == 2
    placed.release()
    with pytest.raises(EngineError, match="released"):
        placed.call("pid")


def test_calls_through_the_scheduler(client):
    placed = DaskEngine(client, direct=False).place([WITNESS] * 2)
    assert placed.call("echo", np.arange(3)) == [[0, 1, 2]] * 2


def test_an_error_of_a_shard_keeps_its_type(engine, tmp_path):
    placed = engine.place([WITNESS] * 2)
    with pytest.raises(FileNotFoundError, match=r"nothing\.svm") as found:
        placed.call("read", str(tmp_path / "nothing.svm"))
    assert found.value.__notes__ == [f"(shard 0, worker {placed.workers()[0]})"]
    assert len(placed.call("pid")) == 2
    (tmp_path / "good.svm").write_text("1 1:1\n-1 1:2\n")
    (tmp_path / "bad.svm").write_text("1 1:1\n-1 1:x\n")
    with pytest.raises(DataError, match=r"bad\.svm.*line 2") as found:
        Shards.from_files([tmp_path / "good.svm", tmp_path / "bad.svm"], engine)
    assert "shard 1" in found.value.__notes__[0]


class Unknown:
    """Something that a worker cannot read."""

    def __reduce__(self):
        return importlib.import_module, ("a_module_of_nobody",)


def test_what_a_worker_cannot_read_is_no_lost_worker(engine):
    placed = engine.place([WITNESS] * 2)
    with pytest.raises(ModuleNotFoundError, match="a_module_of_nobody") as found:
        placed.call("echo", Unknown())
    assert "worker tcp://" in found.value.__notes__[0]
    with pytest.raises(ModuleNotFoundError, match="a_module_of_nobody"):
        engine.place([Unknown()])
    assert len(placed.call("pid")) == 2
    assert placed.remade == 0


def actors(client):
    return {key for held in client.run(lambda dask_worker: list(dask_worker.state.actors)).values() for key in held}


def test_a_client_stays_open_and_actors_go(client):
    before = actors(client)
    with DaskEngine(client) as engine:
        placed = engine.place([WITNESS] * 3)
        assert placed.call("echo", ()) == [[]] * 3
        assert len(actors(client) - before) == 3
    assert client.status == "running"
    deadline = time.monotonic() + 20.0
    while actors(client) - before:
        assert time.monotonic() < deadline


def value_of(shards):
    """Return a risk of the shards, with the labels and weights that come with them, at some point."""
    return linear_risk(shards, shards.y, "logistic", sample_weight=shards.weight).evaluate(np.arange(4.0))[0]


def test_arrays_of_dask(current, binary):
    X, y = binary
    chunked, labels, weight = da.from_array(X, chunks=(40, 3)), da.from_array(y, chunks=50), np.arange(90.0)
    unknown = chunked[chunked[:, 0] > -100.0]
    blocks = chunked.rechunk((30, 4)).map_blocks(sparse.csr_array)
    one = bmrm.LinearRisk(X, y, "logistic", sample_weight=weight).evaluate(np.arange(4.0))[0]
    for rows, targets in [
        (chunked, labels), (chunked.persist(), labels.persist()), (unknown, y), (unknown, labels), (blocks, labels)
    ]:  # fmt: skip
        weights = weight if rows is chunked else da.from_array(weight, chunks=90)
        assert value_of(Shards.from_dask(rows, targets, weights)) == pytest.approx(one, rel=1e-12)
    shards = Shards.from_dask(chunked, labels)
    assert set(shards.placed.workers()) <= set(current.nthreads())
    assert shards.source == "partition 0 ... partition 2"


def test_estimators_take_arrays_of_dask(current, binary):
    X, y = binary
    chunked, labels = da.from_array(X, chunks=(40, 3)), da.from_array(y, chunks=50)
    one = bmrm.LinearClassifier(loss="logistic", lam=0.01, tol=1e-6).fit(X, y, sample_weight=np.arange(90.0))
    other = bmrm.LinearClassifier(loss="logistic", lam=0.01, tol=1e-6)
    other.fit(chunked, labels, sample_weight=da.arange(90.0, chunks=90))
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-6)
    np.testing.assert_allclose(one.decision_function(chunked), one.decision_function(X))
    assert list(one.predict(chunked)) == list(one.predict(X))


def test_frames_of_dask(current, binary):
    X, y = binary
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=np.where(y > 0.0, "yes", "no"), weight=np.arange(90.0))
    frame["query"] = np.arange(90) // 30
    parts = dd.from_pandas(frame, npartitions=3)
    shards = Shards.from_dask(parts, "label", "weight", "query", client=current)
    assert shards.shape == (90, 4)
    assert list(shards.y) == list(frame.label)
    assert list(shards.groups) == list(frame["query"])
    model = bmrm.LinearClassifier(loss="logistic", lam=0.01, tol=1e-6)
    objective = model.fit(X, frame.label, frame.weight).objective_
    for other in (shards, Shards.from_dask(parts[list("abcd")], parts["label"], parts["weight"])):
        assert model.fit(other).objective_ == pytest.approx(objective, rel=2e-6)
        assert list(model.classes_) == ["no", "yes"]
    some = parts[parts["query"] == 1]  # two partitions are left without rows
    assert [about.rows for about in Shards.from_dask(some[list("abcd")]).about] == [30]


def test_collections_without_a_cluster(binary):
    X, y = binary
    one = bmrm.LinearRegressor(tol=1e-8).fit(X, y)
    other = bmrm.LinearRegressor(tol=1e-8).fit(da.from_array(X, chunks=(40, 4)), da.from_array(y, chunks=90))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-7)


def test_collections_that_do_not_fit(binary):
    X, y = binary
    chunked = da.from_array(X, chunks=(40, 4))
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "town": ["x", "y"]}), npartitions=1)
    cases = [
        ((chunked, da.zeros(30)), "y has length 30, but X has 90 rows"),
        ((chunked, y[:30]), "y has length 30, but X has 90 rows"),
        ((chunked, "label"), "y='label' names a column of a data frame, but X is an array"),
        ((chunked[:, 0],), "X has 1 dimensions; expected 2"),
        ((frame["a"],), "X has 1 dimensions; expected 2"),
        ((frame,), "columns that are no numbers: town"),
        ((da.zeros((0, 3)),), "there are no shards"),
        ((frame, "city"), "the data frame has no column 'city' for y; it has a, town"),
        ((frame[["a"]], frame["a"][frame["a"] > 1.5]), "partition 0: y has length 1, but X has 2 rows"),
        ((chunked, dd.from_pandas(pd.Series(y), npartitions=2)), "y has 2 partitions, but X has 3"),
    ]
    for arguments, words in cases:
        with pytest.raises(DataError, match=words):
            Shards.from_dask(*arguments)
    with pytest.raises(TypeError, match="X must be a Dask array or a Dask data frame, got ndarray"):
        Shards.from_dask(X)
    with pytest.raises(ValueError, match="X has 2 features, but LinearClassifier is expecting 4 features"):
        bmrm.LinearClassifier().fit(X, y).predict(chunked[:, :2])


def test_commands(client, binary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = binary
    for k, (rows, labels) in enumerate(parts_of(X, y)):
        bmrm.write(f"part-{k}.svm", rows, labels)
    files = [tmp_path / f"part-{k}.svm" for k in range(3)]
    there = ["--engine", "dask", "--scheduler", client.scheduler.address, "--tol", "1e-6"]
    found = json.loads(good("train", *files, *there, "--model", "dask.bmrm", "--history", "h.csv", "--json").stdout)
    good("train", *files, "--engine", "local", "--tol", "1e-6", "--model", "local.bmrm", "--quiet")
    assert found["objective"] == pytest.approx(bmrm.load("local.bmrm").certificate.upper, rel=1e-12)
    assert "busy" in (tmp_path / "h.csv").read_text().splitlines()[0]
    (tmp_path / "bad.svm").write_text("1 1:1\n-1 1:x\n")
    assert "bad.svm, line 2" in bad("train", *files, tmp_path / "bad.svm", *there, "--model", "no.bmrm")
    assert not (tmp_path / "no.bmrm").exists()
    both = ["--workers", "2", "--model", "no.bmrm"]
    assert "a scheduler has its own" in bad("train", *files, *there, *both)
