"""Bad and unusual input of the estimators of classes, label sets, trees and queries: one clear error, or a warning."""

import numpy as np
import pytest

from bmrm import (
    HierarchicalClassifier,
    LinearClassifier,
    LinearRisk,
    MultilabelClassifier,
    Problem,
    Ranker,
    ScoreClassifier,
    solve,
)
from bmrm.losses import HierarchicalSoftmax, Mrr, MulticlassHinge, Ndcg, Softmax, Tree


@pytest.fixture
def scored():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return X, X @ rng.normal(size=(5, 4))


@pytest.mark.parametrize(
    ("costs", "message"),
    [({"a": 3.0}, "costs of the class 'a' must be a dict"), ("abc", "costs must be a matrix of numbers or a dict")],
)
def test_costs_of_another_shape(scored, costs, message):
    X, F = scored
    with pytest.raises(ValueError, match=message):
        LinearClassifier(loss="multiclass_hinge", costs=costs).fit(X, np.array(list("abcd"))[np.argmax(F, axis=1)])


def test_names_longer_than_the_labels_are_kept(scored):
    X, F = scored
    y = np.array(list("abcd"))[np.argmax(F, axis=1)]
    tree = {"letters": {"a": {}, "b": {}}, "others": ["c", "d"]}
    model = HierarchicalClassifier(tree=tree, nodes="all").fit(X, y)
    assert model.classes_.tolist() == ["letters", "a", "b", "others", "c", "d"]
    assert HierarchicalClassifier(tree=tree).fit(X, y.astype(object)).predict(X).dtype == object
    numbers = HierarchicalClassifier(tree={"low": [0, 1], "high": [2, 3]}, nodes="all").fit(X, np.argmax(F, axis=1))
    assert numbers.classes_.tolist() == ["low", "0", "1", "high", "2", "3"]
    leaves = HierarchicalClassifier(tree={"low": [0, 1], "high": [2, 3]}).fit(X, np.argmax(F, axis=1))
    assert set(leaves.predict(X)) <= {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([4, 4, 5, 9, -1, -1], "the parent of 3 is 9; in a list of parents it is a number from 0 to 5"),
        ([1.0, float("nan"), -1], "the parent of 0 is 1.0"),
        ([("top", "a"), ("top", "b")], "names take a mapping"),
        ("abc", "given by a mapping, or a list"),
        (7, "given by a mapping, or a list"),
    ],
)
def test_bad_lists_of_parents(parents, message):
    with pytest.raises(ValueError, match=message):
        Tree.from_parents(parents)


def test_trees_of_names_where_names_are_missing():
    with pytest.raises(ValueError, match="below 'top' stands 3, where names"):
        Tree.from_nested({"top": 3, "other": {}})
    assert Tree.from_parents(np.array([2, 2, -1, -1])).parents == (-1, 0, 0, -1)


def test_rows_that_order_no_labels(scored):
    X, F = scored
    Y = (F > 0.0).astype(int)
    Y[:3], Y[3] = 0, 1
    n_full, n_empty = np.sum(Y.all(axis=1)), np.sum(~Y.any(axis=1))
    with pytest.warns(UserWarning, match=f"{n_empty} of 60 rows have no label and {n_full} have all of them"):
        MultilabelClassifier(lam=1e-2).fit(X, Y)
    with pytest.raises(ValueError, match="no row orders the labels"):
        MultilabelClassifier().fit(X, np.zeros((60, 3)))
    for sets in ([set()] * 60, [{"a"}] * 60):
        with pytest.raises(ValueError, match="different labels; there must be at least two"):
            MultilabelClassifier().fit(X, sets)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_rows_without_a_query(scored, missing):
    X, F = scored
    with pytest.raises(ValueError, match="row 4 has no group"):
        Ranker().fit(X, F[:, 0] > 0, qid=[1.0] * 4 + [missing] * 2 + [2.0] * 54)


@pytest.mark.filterwarnings("ignore::bmrm.MeaninglessObjectiveWarning")  # 20 positives
def test_a_score_of_more_rows_than_there_are(scored):
    X, F = scored
    model = ScoreClassifier(score="precision_at_k", score_params={"k": 40}, lam=1e-2).fit(X, F[:, 0] > 0)
    with pytest.raises(ValueError, match="k = 40 needs at least as many rows, but there are 20"):
        model.score(X[:20], F[:20, 0] > 0)


def test_equal_grades_may_differ_in_score():
    """Two relevant documents of twelve, well ahead: what the others score among each other costs nothing."""
    rng = np.random.default_rng(1)
    y = np.array([1.0] * 2 + [0.0] * 10)
    f = np.concatenate([[50.0, 60.0], rng.normal(size=10)])
    for kind in (Ndcg, Mrr):
        losses = {ties: kind(ties=ties) for ties in ("rows", "together")}
        values = {ties: loss.evaluate(f, loss.encode(y, [0] * 12), np.ones(12))[0] for ties, loss in losses.items()}
        assert values["together"] == pytest.approx(0.0, abs=1e-12)
        assert values["rows"] > 0.5
    with pytest.raises(ValueError, match="'ties' of loss 'ndcg' must be"):
        Ndcg(ties="none")


def test_the_ranker_keeps_equal_grades_together(scored):
    X, F = scored
    y, qid = (F[:, 0] > 1.0).astype(int), np.arange(60) // 12
    assert Ranker(loss="ndcg", lam=1e-2).fit(X, y, qid=qid).loss_.ties == "together"
    for given in (Ranker(loss="ndcg", loss_params={"ties": "rows"}), Ranker(loss=Ndcg())):
        assert given.set_params(lam=1e-2).fit(X, y, qid=qid).loss_.ties == "rows"


@pytest.mark.parametrize(
    ("loss", "free"),
    [
        (Softmax(n_classes=6), [0, 1, 2]),
        (Softmax(n_classes=4), [0, 1, 2]),
        (MulticlassHinge(n_classes=6), [0, 1, 2, 3, 4]),
        (HierarchicalSoftmax(Tree((-1, 0, 0, -1, 3, 3)), nodes="all"), [0, 1, 2]),
        (HierarchicalSoftmax(Tree((-1, -1, -1, -1))), [0, 1, 2]),
    ],
)
def test_the_constant_of_a_class_without_rows_does_not_fall_without_end(scored, loss, free):
    X, F = scored
    risk = LinearRisk(X, np.argmax(F + np.random.default_rng(0).normal(size=F.shape), axis=1), loss, intercept=True)
    k = risk.n_outputs
    assert [c - (risk.dim - k) for c in risk.unpenalized] == free
    assert solve(Problem(risk, "l2", 1e-2), tol=1e-6, max_iter=200).converged
