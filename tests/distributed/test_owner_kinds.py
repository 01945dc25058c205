"""Owners with other labels than classes: sets of labels, nodes of a tree, several numbers for each row."""

from __future__ import annotations

import numpy as np
import pytest
from commands import good, run
from parties import OPEN, channel, halves, parties, served

import bmrm
from bmrm import LinearRisk, OwnersRisk, Problem, solve
from bmrm.losses import HierarchicalHinge, HierarchicalSoftmax, MultilabelHinge, MultivariateRegression, Tree
from bmrm.owners import OwnerError, Owners, Refused
from bmrm.owners.session import Session
from bmrm.owners.threshold import label_threshold
from bmrm.owners.wire import Message, packed

NAMES = np.array(["a/x", "a/y", "b"])
NODES = {"tree": {"parents": [-1, -1, 0], "names": ["0", "1", "2"]}, "nodes": "all"}
NESTED = {"animal": {"cat": None, "dog": None}, "plant": None}


def sets_of(X, k=3):
    """Return each row's labels, those with a positive score."""
    return [tuple(f"tag {j}" for j in range(k) if row[j] > 0.0) for row in X]


def same_optimum(risk, one, tol=1e-6):
    w = np.linspace(-0.1, 0.1, risk.dim)
    assert risk.evaluate(w)[0] == pytest.approx(one.evaluate(w)[0], rel=1e-9)
    result, whole = solve(risk.problem, tol=tol), solve(Problem(one, "l2", risk.lam), tol=tol)
    assert result.converged
    assert result.certificate.lower <= whole.certificate.upper
    assert whole.certificate.lower <= result.certificate.upper


@pytest.mark.parametrize("masked", [False, True])
def test_sets_of_labels_by_name(masked, rng):
    X = rng.normal(size=(300, 4))
    sets = sets_of(X)
    Y = np.array([[f"tag {j}" in own for j in range(3)] for own in sets], dtype=float)
    owners = [bmrm.Owner((X[s::2], sets[s::2]), f"owner {s}", guard=OPEN) for s in range(2)]
    with OwnersRisk(owners, "multilabel_hinge", lam=0.01, masked=masked) as risk:
        assert risk.classes.tolist() == ["tag 0", "tag 1", "tag 2"]
        same_optimum(risk, LinearRisk(X, Y, "multilabel_hinge"))


def test_a_matrix_of_labels_and_one_with_fewer_columns(rng):
    X = rng.normal(size=(300, 4))
    Y = (X[:, :3] > 0.0).astype(float)
    Y[150:, 2] = 0.0
    owners = [
        bmrm.Owner((X[:150], Y[:150]), "wide", guard=OPEN),
        bmrm.Owner((X[150:], Y[150:, :2]), "narrow", guard=OPEN),
    ]
    with OwnersRisk(owners, "multilabel_hinge", lam=0.01, intercept=True) as risk:
        same_optimum(risk, LinearRisk(X, Y, "multilabel_hinge", intercept=True))
    with pytest.raises(Refused, match="wide refused: this owner's matrix of labels has 3 columns, but the run 2"):
        OwnersRisk(owners, "multilabel_hinge", lam=0.01, classes=["a", "b"])


def test_labels_that_are_alone_are_told_to_nobody(rng):
    X = rng.normal(size=(120, 4))
    alone = [(f"name of row {i}",) for i in range(120)]
    with pytest.raises(Refused, match="no classes: 120 different ones in 120 rows") as said:
        OwnersRisk([bmrm.Owner((X, alone), guard=OPEN)], "multilabel_hinge", lam=0.1)
    assert "name of row" not in str(said.value)
    owner = bmrm.Owner((X, sets_of(X)), guard=OPEN)
    with pytest.raises(Refused, match="labels that are not among the 2 classes of the run") as said:
        OwnersRisk([owner], "multilabel_hinge", lam=0.1, classes=["tag 0", "tag 1"])
    assert "tag 2" not in str(said.value)
    with pytest.raises(Refused, match="has numbers for each row, no labels"):
        OwnersRisk([bmrm.Owner((X, X[:, :2]), guard=OPEN)], "multilabel_hinge", lam=0.1)


@pytest.mark.parametrize("loss", ["hierarchical_hinge", "hierarchical_softmax"])
@pytest.mark.parametrize("given", [None, {"a/x": "a", "a/y": "a", "b": None}])
def test_a_tree_of_paths_or_given(loss, given, rng):
    X = rng.normal(size=(300, 4))
    y = NAMES[np.argmax(X[:, :3], axis=1)]
    tree = Tree.from_paths(NAMES)
    nodes = bmrm.losses.tree.nodes_of(tree, y)
    one = LinearRisk(X, nodes, bmrm.losses.get(loss, tree=tree), intercept=True)
    ordered = np.argsort(y, kind="stable")
    X, y = X[ordered], y[ordered]  # the first owner has no row of the last class
    with OwnersRisk(parties(X, y), loss, lam=0.01, intercept=True, tree=given) as risk:
        assert risk.unpenalized == one.unpenalized
        assert risk.loss.tree.names == tree.names
        assert risk.classes.tolist() == ["a/x", "a/y", "b"]
        same_optimum(risk, one)


def test_inner_nodes_and_nested_names(rng):
    X = rng.normal(size=(300, 4))
    y = np.array(["animal", "cat", "dog", "plant"])[np.argmax(X, axis=1)]
    tree = Tree.from_nested(NESTED)
    one = LinearRisk(X, bmrm.losses.tree.nodes_of(tree, y), HierarchicalHinge(tree, nodes="all"))
    with OwnersRisk(parties(X, y), "hierarchical_hinge", lam=0.01, tree=NESTED) as risk:
        assert risk.loss.nodes == "all"
        same_optimum(risk, one)


def test_trees_that_do_not_fit(rng):
    X = rng.normal(size=(300, 4))
    y = NAMES[np.argmax(X[:, :3], axis=1)]
    with pytest.raises(ValueError, match="'a/x', which is not in the hierarchy"):
        OwnersRisk(parties(X, y), "hierarchical_hinge", lam=0.1, tree=NESTED)
    with pytest.raises(Refused, match="not among the 4 nodes of the hierarchy") as said:
        OwnersRisk(parties(X, y), HierarchicalSoftmax(Tree.from_nested(NESTED)), lam=0.1, classes=["cat", "dog"])
    assert "a/x" not in str(said.value)
    with pytest.raises(ValueError, match=r"numbers, not paths such as a/b/c: give the tree of classes \(tree\)"):
        OwnersRisk(parties(X, np.argmax(X, axis=1)), "hierarchical_hinge", lam=0.1)
    with pytest.raises(ValueError, match=r"tree is for the losses hierarchical_\*, not for 'hinge'"):
        OwnersRisk(parties(X, np.sign(X[:, 0])), "hinge", lam=0.1, tree=NESTED)


def test_a_tree_too_large_for_an_owner(rng):
    X = rng.normal(size=(300, 2))
    loss = HierarchicalHinge(Tree((-1,) * 1001))
    with pytest.raises(ValueError, match="1001 scores for each row; owners compute 1000 at most"):
        OwnersRisk(parties(X, np.arange(300) % 2), loss, lam=0.1, classes=["0", "1"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"loss_parameters": {"tree": 3}},
        {"loss_parameters": {"tree": {"parents": [5, 5]}}},
        {"loss_parameters": {"tree": {"parents": [-1, -1], "names": ["a"]}}},
        {"loss_parameters": {"tree": {"roots": []}}},
        {"loss_parameters": {"tree": {"parents": [-1] * 5000}}},
        {"loss_parameters": {"nodes": "some"}},
        {"classes": [["0"]]},
        {"classes": ["no node"]},
        {"loss": "multilabel_hinge", "loss_parameters": {}, "classes": [[0], [1]]},
        {"loss": "multilabel_hinge", "loss_parameters": {}, "classes": list(range(2000))},
        {"loss": "multilabel_hinge", "loss_parameters": {}, "classes": None},
        {"loss": "multivariate_regression", "loss_parameters": {}, "classes": list(range(2000))},
        {"loss": "multivariate_regression", "loss_parameters": {}, "classes": [], "sets": True},
        {"sets": 1},
    ],
    ids=str,
)
def test_terms_of_another_make(wrong, rng):
    """Whatever the terms say, the owner answers with a refusal and serves on."""
    X = rng.normal(size=(300, 4))
    owner = bmrm.Owner((X, np.arange(300) % 3), guard=OPEN)
    way = channel(owner)
    terms = {
        "loss": "hierarchical_hinge", "loss_parameters": {"tree": {"parents": [-1, -1, 0]}}, "regularizer": "l2",
        "regularizer_parameters": {}, "lam": 0.1, "n_features": 4, "intercept": True, "classes": ["1", "2"],
        "positive": None, "masked": False,
    }  # fmt: skip
    for these, refused in ((terms | wrong, True), (terms | {"loss_parameters": NODES}, False)):
        way.send(packed(Message({"method": "begin", "risk": 1, "terms": these})))
        answer = way.receive().header
        assert ("refused" in answer) == refused, answer
        assert refused or answer["mass"] == 300.0
    way.close()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("M", [None, ((2.0, -1.0), (-1.0, 1.0))])
def test_several_numbers(M, masked, rng):
    X = rng.normal(size=(300, 4))
    Y = X[:, :2] + rng.normal(size=(300, 2))
    owners = [
        bmrm.Owner((X[:150], Y[:150]), "one", guard=OPEN),
        bmrm.Owner((X[150:], [tuple(own) for own in Y[150:]]), "two", guard=OPEN),
    ]
    with OwnersRisk(owners, MultivariateRegression(M), lam=0.01, masked=masked) as risk:
        same_optimum(risk, LinearRisk(X, Y, MultivariateRegression(M)))


def test_numbers_that_differ_from_owner_to_owner(rng):
    X = rng.normal(size=(300, 4))
    for second in (X[150:, :3], X[150:, 0], [tuple(X[i, : 1 + i % 2]) for i in range(150)]):
        owners = [
            bmrm.Owner((X[:150], X[:150, :2]), "one", guard=OPEN),
            bmrm.Owner((X[150:], second), "two", guard=OPEN),
        ]
        with pytest.raises(OwnerError, match=r"two: its rows have \w+ numbers to predict; expected 2"):
            OwnersRisk(owners, "multivariate_regression", lam=0.1)


def test_an_owner_that_tells_no_number_of_numbers(rng, monkeypatch):
    hello = Session._hello
    monkeypatch.setattr(Session, "_hello", lambda self, *given: hello(self, *given) | {"targets": "many"})
    X = rng.normal(size=(300, 4))
    with pytest.raises(OwnerError, match="owner: answers 'hello' with targets 'many'; expected a whole number"):
        OwnersRisk([bmrm.Owner((X, X[:, :2]), guard=OPEN)], "multivariate_regression", lam=0.1)


def test_no_label_leaves_an_owner_that_is_not_told(rng):
    """Labels that are given by the coordinator are not asked for."""
    X = rng.normal(size=(300, 4))
    owners = [
        bmrm.Owner(part, f"owner {s}", guard=OPEN) for s, part in enumerate(halves(X, (X[:, :3] > 0.0).astype(float)))
    ]
    with OwnersRisk(owners, MultilabelHinge(n_classes=3), lam=0.1, classes=[0, 1, 2]):
        pass
    assert all(entry["what"] != "classes" for owner in owners for entry in owner.log.entries)


def test_the_threshold_of_labels_by_sums(rng):
    """That of two normal distributions, as from all scores."""
    X = rng.normal(size=(300, 4))
    sets = sets_of(X + 0.3)
    coef, constants = rng.normal(size=(3, 4)) + 2.0 * np.eye(3, 4), rng.normal(size=3)
    f, Y = X @ coef.T + constants, np.array([[f"tag {j}" in own for j in range(3)] for own in sets])
    above, below, share = f[Y].mean(), f[~Y].mean(), Y.mean()
    spread = share * f[Y].var() + (1.0 - share) * f[~Y].var()
    expected = 0.5 * (above + below) + spread / (above - below) * np.log((1.0 - share) / share)
    parts = [bmrm.Owner((X[s::2], sets[s::2]), f"owner {s}", guard=OPEN) for s in range(2)]
    with Owners(parts) as owners:
        found = label_threshold(owners, ["tag 0", "tag 1", "tag 2"], coef, constants, 0.01, "l2")
        assert found == pytest.approx(expected, rel=1e-9)
        assert [owner.answers for owner in parts] == [2, 2]


def test_a_threshold_that_cannot_be_asked_for(rng, tmp_path, monkeypatch):
    """The model is there all the same."""
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(300, 4))
    common = ["--loss", "multilabel_hinge", "--lam", "1e-2", "--model", "m.bmrm"]
    for options, says in ((["--masked", "--no-intercept"], "under masks there are no sums"), ([], "refused: enough")):
        if not options:
            monkeypatch.setattr("bmrm.cli.owners.label_threshold", refusing)
        owners = [bmrm.Owner((X[s::2], sets_of(X[s::2])), f"owner {s}", guard=OPEN) for s in range(2)]
        with served(owners) as addresses:
            result = good("train", "--owners", ",".join(addresses), *common, *options)
        assert f"the threshold of labels is 0 ({says}" in result.stderr
        assert bmrm.load("m.bmrm").thresholds.tolist() == [0.0]


def refusing(*arguments):
    raise Refused("refused: enough")


def test_command_line(rng, tmp_path, monkeypatch):
    """The same models as from one file."""
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(400, 4))
    y = np.argmax(X[:, :3], axis=1)
    sets = [tuple(float(j) for j in range(3) if row[j] > 0.0) for row in X]
    (tmp_path / "tree.txt").write_text("top 0\ntop 1\nside 2\n")
    (tmp_path / "costs.txt").write_text("0 1 2\n1 0 2\n2 2 0\n")
    bmrm.write("nodes.svm", X, y)
    bmrm.write("sets.svm", X, sets)
    bmrm.write("numbers.svm", X, [tuple(row) for row in X[:, :2]])
    for name, loss, *options in (
        ("nodes", "hierarchical_softmax", "--hierarchy", "tree.txt"),
        ("nodes", "hierarchical_hinge", "--hierarchy", "tree.txt", "--costs", "costs.txt"),
        ("nodes", "multiclass_hinge", "--costs", "costs.txt"),
        ("sets", "multilabel_hinge"),
        ("numbers", "multivariate_regression"),
    ):
        data = bmrm.read(f"{name}.svm")
        labels = data.y if isinstance(data.y, list) else np.asarray(data.y)
        owners = [bmrm.Owner((data.X[s::2], labels[s::2]), f"owner {s}", guard=OPEN) for s in range(2)]
        common = ["--loss", loss, "--lam", "1e-3", "--tol", "1e-5", *options]
        with served(owners) as addresses:
            good("train", "--owners", ",".join(addresses), "--model", "o.bmrm", *common)
        good("train", f"{name}.svm", "--model", "f.bmrm", *common)
        ours, whole = bmrm.load("o.bmrm"), bmrm.load("f.bmrm")
        assert ours.certificate.upper == pytest.approx(whole.certificate.upper, rel=3e-5)
        assert (ours.classes is None) == (whole.classes is None)
        assert ours.classes is None or ours.classes.tolist() == whole.classes.tolist()
        difference = np.abs(ours.predict(X).astype(float) - whole.predict(X).astype(float))
        assert np.mean(difference) < 0.05


def test_command_line_of_labels_that_do_not_fit(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(300, 4))
    (tmp_path / "tree.txt").write_text("top 0\ntop 1\n")
    with served(parties(X, np.argmax(X, axis=1))) as addresses:
        for options, says in (
            (["--loss", "hierarchical_hinge", "--hierarchy", "tree.txt"], "not in the hierarchy tree.txt"),
            (["--loss", "hierarchical_hinge"], "give the tree of classes by --hierarchy"),
            (["--loss", "logistic", "--hierarchy", "tree.txt"], "a hierarchy is for the losses hierarchical_*"),
            (["--loss", "least_squares", "--multiclass", "joint"], "--multiclass joint is for classification"),
        ):
            result = run("train", "--owners", ",".join(addresses), "--model", "none.bmrm", *options)
            assert result.exit_code == 2
            assert says in result.stderr
