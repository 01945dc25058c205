"""The commands for hierarchies: trees from files and from paths, costs, measures, and bad files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import LEAVES, bad, evaluated, good, write_files
from sklearn import metrics

import bmrm
from bmrm.losses import Tree


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files()
    return tmp_path


PAIRS = """# what there is
root animal
root plant   # and this

animal cat
animal dog
plant tree
tree oak
tree elm
"""
NESTED = {"root": {"animal": ["cat", "dog"], "plant": {"tree": {"oak": {}, "elm": None}}}}


def write_tree(kind):
    with open("tree.txt", "w") as out:
        out.write(PAIRS if kind == "pairs" else json.dumps(NESTED, indent=1))
    data = bmrm.read("paths.npz")
    bmrm.write("leaves.npz", data.X, np.array([label.split("/")[-1] for label in data.y]))


@pytest.mark.parametrize("kind", ["pairs", "nested"])
@pytest.mark.parametrize("loss", ["hierarchical_hinge", "hierarchical_softmax"])
def test_hierarchies(kind, loss):
    write_tree(kind)
    good("train", "paths.npz", "--loss", loss, "--lam", 0.01)
    result = good("train", "leaves.npz", "--loss", loss, "--hierarchy", "tree.txt", "--lam", 0.01)
    assert "4 classes in a tree of 8 nodes" in result.stdout
    paths, leaves, data = bmrm.load("paths.bmrm"), bmrm.load("leaves.bmrm"), bmrm.read("paths.npz")
    assert paths.loss.tree == Tree.from_paths(LEAVES)
    assert sorted(leaves.classes) == ["cat", "dog", "elm", "oak"]
    fitted = bmrm.HierarchicalClassifier(loss=loss, lam=0.01).fit(data.X, data.y)
    assert np.mean(paths.predict(data.X) == fitted.predict(data.X)) > 0.95
    assert paths.certificate.lower <= fitted.certificate_.upper
    lines = good("predict", "leaves.bmrm", "leaves.npz", "--path").stdout.splitlines()
    short = good("predict", "leaves.bmrm", "leaves.npz").stdout.splitlines()
    assert [line.split(" > ")[-1] for line in lines] == short
    assert "root > plant > tree > oak" in lines
    assert good("predict", "paths.bmrm", "paths.npz", "--path").stdout.count("animal > animal/cat") > 5
    scores = good("predict", "paths.bmrm", "paths.npz", "--scores").stdout.splitlines()
    sums = np.array([line.split() for line in scores], float)
    assert paths.classes[np.argmax(sums, axis=1)].tolist() == paths.predict(data.X).tolist()


def test_measures_of_hierarchies():
    found, y, predicted, _scores = evaluated("paths.npz", "--loss", "hierarchical_softmax")
    tree = Tree.from_paths(LEAVES)
    place = {name: node for node, name in enumerate(tree.names)}
    distances = [tree.distances()[place[a], place[b]] for a, b in zip(y, predicted)]
    assert np.max(distances) > 2.0
    assert found["tree_loss"] == pytest.approx(np.mean(distances))
    assert found["accuracy"] == metrics.accuracy_score(y, predicted)
    assert found["macro_f1"] == metrics.f1_score(y, predicted, average="macro")
    p = np.array(
        [line.split() for line in good("predict", "m.bmrm", "paths.npz", "--proba").stdout.splitlines()], float
    )
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, p, labels=sorted(LEAVES)))
    assert found["mean_loss"] == pytest.approx(found["log_loss"])


def test_inner_nodes_and_numbers_as_names():
    data = bmrm.read("three.svm")
    with open("tree.txt", "w") as out:
        out.write("0 1\n0 2\n")
    good("train", "three.svm", "--loss", "hierarchical_hinge", "--hierarchy", "tree.txt")
    model = bmrm.load("three.bmrm")
    assert model.loss.nodes == "all"
    assert model.classes.tolist() == ["0", "1", "2"]
    assert good("predict", "three.bmrm", "three.svm").stdout.split() == model.predict(data.X).tolist()
    np.save("costs.npy", np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]]))
    with open("tree.txt", "w") as out:
        out.write("top 2\ntop 1\ntop 0\n")
    good("train", "three.svm", "--loss", "hierarchical_hinge", "--hierarchy", "tree.txt", "--costs", "costs.npy")
    model = bmrm.load("three.bmrm")
    assert model.classes.tolist() == ["2", "1", "0"]
    assert np.array_equal(model.loss.delta, [[0, 6, 5], [4, 0, 3], [2, 1, 0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("root cat\nroot dog\nanimal cat\n", "tree.txt, line 3: 'cat' has two parents, 'root' (line 1) and 'animal'"),
        ("a b\n\nb c\nc a\n", "tree.txt, line 4: 'a' below 'c' closes a cycle"),
        ("a a\n", "tree.txt, line 1: 'a' below 'a' closes a cycle"),
        ("a b c\n", "tree.txt, line 1: 'a b c'; expected two names, parent and child"),
        ("# nothing\n", "tree.txt: has no classes"),
        ('{"a": {"b": {}},\n "c": {"b": {}}}', "tree.txt, line 2: 'b' has two parents, 'a' and 'c'"),
        ('{"a": {"b": {}},\n "a": {}}', "tree.txt, line 2: 'a' has two parents, 'the top' and 'the top'"),
        ('{"a": ,}', "tree.txt, line 1: not JSON"),
        ('{"a": 3}', "tree.txt: 3 stands where names of classes are expected"),
        ("root cat\nroot dog\n", "paths.npz: row"),
    ],
)
def test_bad_hierarchies(files, text, message):
    (files / "tree.txt").write_text(text)
    assert message in bad("train", "paths.npz", "--loss", "hierarchical_hinge", "--hierarchy", "tree.txt")
    assert not (files / "paths.bmrm").exists()


def test_a_class_that_is_not_in_the_hierarchy(files):
    (files / "tree.txt").write_text("root cat\nroot dog\n")
    data = bmrm.read("two.svm")
    bmrm.write("pets.npz", data.X, np.where(data.y > 0, "cat", "cow"))
    message = bad("train", "pets.npz", "--loss", "hierarchical_softmax", "--hierarchy", "tree.txt")
    row = int(np.argmax(data.y < 0))
    assert f"pets.npz: row {row} has the label 'cow', which is not in the hierarchy tree.txt" in message


def test_deep_trees(files):
    (files / "deep.txt").write_text("".join(f"n{i} n{i + 1}\n" for i in range(1500)) + "n0 other\n")
    data = bmrm.read("two.svm")
    bmrm.write("deep.npz", data.X, np.where(data.y > 0, "n1500", "other"))
    good("train", "deep.npz", "--loss", "hierarchical_softmax", "--hierarchy", "deep.txt", "--max-iter", 3, code=3)
    lines = good("predict", "deep.bmrm", "deep.npz", "--path").stdout.splitlines()
    assert {line.count(" > ") for line in lines} <= {1, 1500}
