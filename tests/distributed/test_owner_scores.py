"""Owners that allow scores: losses of all rows together, what they tell, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from commands import good, run
from parties import channel, parties, rows, served

import bmrm
from bmrm import LinearRisk, OwnersRisk, solve
from bmrm.owners import GuardSettings, OwnerError, Owners, OwnersRows, Refused
from bmrm.owners.score_requests import ScoreRequests
from bmrm.owners.session import Session
from bmrm.owners.wire import Message, WireError, packed


@pytest.fixture
def data(rng):
    return rows(rng)


def ask(way, header, *arrays):
    way.send(packed(Message(header, arrays)))
    return way.receive()


def test_text_labels_and_weights(rng):
    X, y = rows(rng)
    words, weight = np.where(y > 0, "yes", "no"), rng.uniform(0.5, 2.0, size=300)
    owners = [
        bmrm.Owner((X[part], words[part], None, weight[part]), f"owner {s}", allow_scores=True)
        for s, part in enumerate((slice(0, 100), slice(100, 300)))
    ]
    one = LinearRisk(X, y, "roc_area", sample_weight=weight)
    w = rng.normal(size=5)
    with OwnersRisk(owners, "roc_area", lam=0.1) as risk:
        assert risk.classes.tolist() == ["no", "yes"]
        assert risk.evaluate(w)[0] == pytest.approx(one.evaluate(w)[0], rel=1e-12)
        np.testing.assert_allclose(risk.norms, one.norms)
        assert risk.extent == pytest.approx(one.extent)
    with OwnersRisk(owners, "roc_area", lam=0.1, positive="no") as risk:
        other = LinearRisk(X, -y, "roc_area", sample_weight=weight)
        assert risk.evaluate(w)[0] == pytest.approx(other.evaluate(w)[0], rel=1e-12)


def test_an_owner_with_fewer_features(rng):
    X, y = rows(rng)
    owners = [
        bmrm.Owner((X[:150], y[:150]), "wide", allow_scores=True),
        bmrm.Owner((X[150:, :3], y[150:]), "narrow", allow_scores=True),
    ]
    X[150:, 3:] = 0.0
    w = rng.normal(size=5)
    with pytest.warns(UserWarning, match="the owners have 3"), OwnersRisk(owners, "roc_area", lam=0.1) as risk:
        value, a = risk.evaluate(w)
    one = LinearRisk(X, y, "roc_area")
    assert value == pytest.approx(one.evaluate(w)[0], rel=1e-12)
    np.testing.assert_allclose(a, one.evaluate(w)[1], atol=1e-12)


def test_rows_can_be_solved_for(data):
    """Why it must be allowed: d independent w say all of the rows, and so do slopes of one row."""
    X, y = data
    with Owners([bmrm.Owner((X, y), allow_scores=True)]) as owners:
        everything = OwnersRows(owners)
        np.testing.assert_array_equal(everything.y, y)
        matrix, found = everything.matrix, np.empty((300, 5))
        for j in range(5):
            scores = np.empty(300)
            matrix.dot(np.eye(5)[j], scores)
            found[:, j] = scores
        np.testing.assert_array_equal(found, X)
        one = np.empty(5)
        matrix.tdot(np.eye(300)[17], one)
        np.testing.assert_array_equal(one, X[17])


def test_nothing_is_told_without_allow_scores(data):
    owner = parties(*data)[0]
    way = channel(owner)
    for method, arrays, says in (
        ("gather", (), "tells no labels and scores of single rows; it would with --allow-scores"),
        ("scores", (np.ones(5),), "scores are told after the labels ('gather'), if they are allowed"),
        ("pull", (np.ones(100),), "if they are allowed"),
        ("sizes", (), "if they are allowed"),
        ("checksum", (), "no run with 5 features has begun"),
    ):
        answer = ask(way, {"columns": 5, "method": method}, *arrays)
        assert says in answer.header["refused"]
        assert not answer.arrays
    assert owner.answers == 0
    way.close()


def test_requests_by_hand(data):
    owner = parties(*data, allow_scores=True)[0]
    way = channel(owner)
    for columns, says in (
        (4, "this owner has 5 features, the run 4"),
        (10**7, "of memory, and 512.0 MB are free"),
        (10**12, "of memory, and 512.0 MB are free"),
    ):
        assert says in ask(way, {"method": "gather", "columns": columns}).header["refused"]
    assert way._session.score_bytes == 0
    ask(way, {"method": "gather", "columns": 6})
    assert way._session.score_bytes == 800
    assert len(ask(way, {"method": "scores"}, np.ones(6)).arrays[0]) == 100
    assert "w has 5 numbers; expected 6" in ask(way, {"method": "scores"}, np.ones(5)).header["refused"]
    assert "99 slopes came for 100 rows" in ask(way, {"method": "pull"}, np.ones(99)).header["refused"]
    assert "no run with 5 features" in ask(way, {"method": "checksum", "columns": 5}).header["refused"]
    assert "checksum" in ask(way, {"method": "checksum", "columns": 6}).header
    for arrays in ((), (np.ones(6), np.ones(6)), (np.full(6, np.nan),), (np.ones(6, dtype=np.int64),)):
        with pytest.raises(WireError, match="one vector of finite float64"):
            ask(way, {"method": "scores"}, *arrays)
    way.close()


def test_the_budget_counts_scores_and_sums_for_slopes(data):
    owners = parties(*data, allow_scores=True, guard=GuardSettings(budget=6))
    with OwnersRisk(owners, "roc_area", lam=0.1) as risk, pytest.raises(Refused, match="6 new answers have been given"):
        [risk.evaluate(np.full(5, 0.1 * k)) for k in range(1, 9)]
    assert owners[0].answers == 6
    assert owners[0].stopped is not None


def test_the_log_says_that_labels_were_told(data):
    owners = parties(*data, allow_scores=True)
    with OwnersRisk(owners, "roc_area", lam=0.1):
        pass
    (entry,) = [entry for entry in owners[0].log.entries if entry["what"] == "scores"]
    assert entry["reason"] == "labels and weights of 100 rows are told"


def test_masks_and_scores_exclude_each_other(data):
    with pytest.raises(bmrm.DataError, match="allow_scores and masked_only exclude each other"):
        parties(*data, allow_scores=True, masked_only=2)


@pytest.mark.parametrize(
    ("method", "wrong", "says"),
    [
        ("_scores", Message({}, (np.ones(7),)), "owner 0: 7 scores; expected 100"),
        ("_scores", Message({}, (np.ones(100, dtype=np.int64),)), r"an answer to 'scores' with arrays \['<i8'\]"),
        ("_scores", Message({}), r"with arrays \[\]; expected \['<f8'\]"),
        ("_pull", Message({}, (np.ones(3),)), "owner 0: 3 entries of X'g; expected 5"),
        ("_gather", Message({"labels": True, "text": None, "weighted": False}, (np.ones(3),)), "owner 0: 3 labels"),
        ("_gather", Message({"labels": True, "text": ["a"], "weighted": False}, (np.ones(100),)), "outside of it"),
        ("_gather", Message({"labels": True, "text": "a", "weighted": False}, (np.zeros(100),)), "of the right types"),
        ("_gather", Message({}), "owner 0: an answer to 'gather' without labels, weighted, text of the right types"),
        ("_checksum", Message({"checksum": 3}), "an answer to 'checksum'"),
        ("_sizes", Message({}, (np.ones(4), np.ones(5, dtype=np.int64), np.ones(1))), "owner 0: 4 sizes of columns"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_answers_are_errors_of_owners(method, wrong, says, data, monkeypatch):
    assert method.strip("_") in ScoreRequests.METHODS
    monkeypatch.setattr(Session, method, lambda self, header, arrays: wrong)

    def asked():
        with OwnersRisk(parties(*data, allow_scores=True), "roc_area", lam=0.1) as risk:
            risk.evaluate(np.ones(5))
            risk.design.matrix.column_sizes()
            risk.design.matrix.identity()

    with pytest.raises(OwnerError, match=says):
        asked()


def test_command_line(rng, tmp_path, monkeypatch):
    """The models of one file, thresholds and all."""
    monkeypatch.chdir(tmp_path)
    X, y = rows(rng)
    bmrm.write("two.svm", X, y)
    bmrm.write("grades.svm", X, np.digitize(X[:, 0], [-0.5, 0.5]).astype(float))
    for name, loss in (("two", "roc_area"), ("two", "fbeta"), ("grades", "ordinal"), ("two", "nu_novelty")):
        data = bmrm.read(f"{name}.svm")
        common = ["--loss", loss, "--lam", "1e-2", "--tol", "1e-6"]
        with served(parties(data.X, data.y, allow_scores=True)) as addresses:
            good("train", "--owners", ",".join(addresses), "--model", "o.bmrm", *common)
            masked = run("train", "--owners", ",".join(addresses), "--masked", "--model", "none.bmrm", *common)
            assert masked.exit_code == 2
            assert "which masks hide" in masked.stderr
        good("train", f"{name}.svm", "--model", "f.bmrm", *common)
        ours, whole = bmrm.load("o.bmrm"), bmrm.load("f.bmrm")
        assert ours.certificate.upper == pytest.approx(whole.certificate.upper, rel=1e-6, abs=1e-9)
        assert np.mean(ours.predict(X) == whole.predict(X)) > 0.98
    with served(parties(X, y)) as addresses:
        refused = run("train", "--owners", ",".join(addresses), "--model", "none.bmrm", "--loss", "roc_area")
        assert refused.exit_code == 2
        assert (
            "does not allow scores of single rows, but loss 'roc_area' looks at all rows together; all owners must"
            in refused.stderr
        )


def test_serve_shard_allows_scores_when_it_is_told_to(data, tmp_path, monkeypatch):
    made = []

    class Seen(Exception):
        """Raised in place of a server."""

    def server(owner, *arguments):
        made.append(owner.allow_scores)
        raise Seen

    monkeypatch.setattr("bmrm.cli.serve.ShardServer", server)
    bmrm.write(str(tmp_path / "rows.svm"), *data)
    for options in ([], ["--allow-scores"]):
        run("serve-shard", str(tmp_path / "rows.svm"), *options)
    assert made == [False, True]


def test_solvers_that_need_a_search_work_as_on_shards(data):
    X, y = data
    with OwnersRisk(parties(X, y, allow_scores=True), "fbeta", lam=1e-2, regularizer="l1") as risk:
        assert solve(risk.problem, "ls_bmrm", tol=1e-5).converged
