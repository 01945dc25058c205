"""Estimators of one joint problem: several scores for each row, or rows that are compared with each other."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn import metrics
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bmrm
from bmrm import (
    ConstantModelWarning,
    HierarchicalClassifier,
    LinearClassifier,
    MultilabelClassifier,
    OrdinalRegressor,
    Ranker,
    ScoreClassifier,
)
from bmrm.losses import MulticlassHinge, NdcgPairs, Softmax, Tree

TREE = Tree.from_paths(["a/x", "a/y", "b/u", "b/v"])


def rows(m: int = 120, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X and four noisy scores for each row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, X @ rng.normal(size=(d, 4)) + rng.normal(size=(m, 4))


def fitted(kind: str, **parameters: Any) -> tuple[Any, np.ndarray, Any]:
    """An estimator of that kind, with data for it."""
    X, F = rows()
    settings = {"lam": 1e-2, **parameters}
    if kind == "classifier":
        y: Any = np.array(["k", "l", "m", "n"])[np.argmax(F, axis=1)]
        return LinearClassifier(**{"loss": "multiclass_hinge", **settings}).fit(X, y), X, y
    if kind == "multilabel":
        y = ((F > 0.5) | (F.max(axis=1, keepdims=True) == F)) & (F.min(axis=1, keepdims=True) < F)
        y = y.astype(int)
        return MultilabelClassifier(**settings).fit(X, y), X, y
    if kind == "hierarchy":
        y = np.array(TREE.names)[TREE.leaves()][np.argmax(F, axis=1)]
        return HierarchicalClassifier(**settings).fit(X, y), X, y
    if kind == "ordinal":
        y = np.array([1, 2, 5, 6])[np.digitize(F[:, 0], [-1.0, 0.0, 2.0])]
        return OrdinalRegressor(**settings).fit(X, y), X, y
    if kind == "ranker":
        y = np.digitize(F[:, 0], [0.0, 1.0])
        return Ranker(**settings).fit(X, y, qid=np.arange(len(X)) // 12), X, y
    y = np.where(F[:, 0] > 0.8, "yes", "no")
    return ScoreClassifier(**settings).fit(X, y), X, y


KINDS = ("classifier", "multilabel", "hierarchy", "ordinal", "ranker", "score")
every_kind = pytest.mark.parametrize("kind", KINDS)


def values(model: Any, X: Any) -> np.ndarray:
    return np.asarray(getattr(model, "decision_function", model.predict)(X))


@every_kind
def test_one_certificate_and_matrices_of_any_kind(kind: str) -> None:
    model, X, y = fitted(kind)
    assert model.converged_
    assert isinstance(model.certificate_, bmrm.Certificate)
    assert model.lower_bound_ <= model.objective_
    again = clone(model)
    extra = {"qid": np.arange(len(X)) // 12} if kind == "ranker" else {}
    again.fit(sparse.csr_array(X), y, **extra)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-3)
    if kind == "ranker":
        np.testing.assert_allclose(model.predict(sparse.csr_array(X)), model.predict(X), rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), model.predict(X))


@every_kind
def test_pickling(kind: str) -> None:
    model, X, _ = fitted(kind)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(values(again, X), values(model, X))


@every_kind
def test_warm_starts_need_fewer_iterations(kind: str) -> None:
    model, X, y = fitted(kind, warm_start=True, tol=1e-6)
    extra = {"qid": np.arange(len(X)) // 12} if kind == "ranker" else {}
    cold, objective = model.n_iter_, model.objective_
    model.set_params(tol=1e-5).fit(X, y, **extra)
    assert model.n_iter_ < cold
    assert model.objective_ <= objective * (1 + 1e-4)


@every_kind
def test_narrow_data_are_refused(kind: str) -> None:
    model, X, _ = fitted(kind)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :3])


def test_costs_are_those_of_the_labels() -> None:
    X, F = rows()
    y = np.array(["low", "mid", "high", "low"])[np.argmax(F, axis=1)]
    names = ["high", "low", "mid"]
    matrix = np.array([[0.0, 9.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    by_matrix = LinearClassifier(loss="multiclass_hinge", lam=1e-2, tol=1e-6, costs=matrix).fit(X, y)
    by_name = LinearClassifier(loss="multiclass_hinge", lam=1e-2, tol=1e-6, costs={"high": {"low": 9.0}}).fit(X, y)
    plain = LinearClassifier(loss="multiclass_hinge", lam=1e-2, tol=1e-6).fit(X, y)
    assert by_matrix.classes_.tolist() == names
    assert by_matrix.objective_ == pytest.approx(by_name.objective_, rel=1e-5)

    def mean_cost(model: Any) -> float:
        codes = [np.searchsorted(names, labels) for labels in (y, model.predict(X))]
        return float(np.mean(matrix[tuple(codes)]))

    assert mean_cost(by_matrix) < mean_cost(plain)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"costs": np.zeros((2, 2))}, "costs must be a 4 x 4 matrix"),
        ({"costs": {"z": {"k": 1.0}}}, "costs name the class 'z'"),
        ({"costs": {"k": {"l": -1.0}}}, "costs are finite and at least 0"),
        ({"costs": np.zeros((4, 4)), "loss": "softmax"}, "costs are for the losses multiclass_hinge"),
        ({"loss": MulticlassHinge(n_classes=7)}, "is for 7 classes, but y has 4"),
        ({"multiclass": "one_vs_rest"}, "cannot be fitted one against the rest"),
        ({"multiclass": "some"}, "multiclass must be"),
        ({"loss": "squared_hinge", "multiclass": "joint"}, "knows no loss of all scores"),
        ({"loss": "roc_area"}, "use ScoreClassifier"),
    ],
)
def test_bad_parameters_of_the_classifier(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted("classifier", **parameters)


def test_joint_takes_the_loss_of_all_scores() -> None:
    for loss, name in (("hinge", "multiclass_hinge"), ("logistic", "softmax")):
        joint = fitted("classifier", loss=loss, multiclass="joint", tol=1e-6)[0]
        assert joint.loss_.name == name
        assert joint.objective_ == pytest.approx(fitted("classifier", loss=name, tol=1e-6)[0].objective_, rel=1e-5)


def test_constants_of_classes_have_the_mean_0() -> None:
    model, _X, _ = fitted("classifier", loss="softmax")
    assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.abs(model.intercept_).max() > 1e-3
    assert not hasattr(model, "partial_fit")
    assert hasattr(LinearClassifier(), "partial_fit")


@pytest.mark.parametrize("kind", ["classifier", "hierarchy"])
def test_probabilities(kind: str) -> None:
    model, X, y = fitted(kind, loss="softmax" if kind == "classifier" else "hierarchical_softmax")
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[np.argmax(p, axis=1)], model.predict(X))
    odds = np.exp(model.decision_function(X))
    np.testing.assert_allclose(p, odds / odds.sum(axis=1, keepdims=True), rtol=1e-10)
    assert metrics.log_loss(y, p, labels=model.classes_) < np.log(4.0)
    assert not hasattr(fitted(kind)[0], "predict_proba")


def test_two_classes_of_softmax_are_logistic_regression() -> None:
    X, F = rows()
    y = F[:, 0] > 0
    softmax = LinearClassifier(loss="softmax", lam=1e-2, tol=1e-10).fit(X, y)
    logistic = LinearClassifier(loss="logistic", lam=5e-3, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(softmax.coef_, logistic.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(softmax.predict_proba(X), logistic.predict_proba(X), rtol=1e-4)


def test_label_sets_in_every_form() -> None:
    model, X, Y = fitted("multilabel", tol=1e-6)
    names = np.array(["p", "q", "r", "s"])
    sets = [set(names[row > 0]) for row in Y]
    for y in (Y.tolist(), sparse.csr_array(Y), sets, [tuple(labels) for labels in sets]):
        other = MultilabelClassifier(lam=1e-2, tol=1e-6).fit(X, y)
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-5)
    assert other.classes_.tolist() == names.tolist()
    predicted = other.predict(X)
    assert [set(labels) for labels in other.predict_labels(X)] == [set(names[row > 0]) for row in predicted]
    assert metrics.hamming_loss(Y, predicted) < 0.3
    assert model.score(X, Y) == metrics.accuracy_score(Y, model.predict(X))
    scores = model.decision_function(X)
    best = min(np.sum((scores > t) != Y) for t in [-np.inf, *scores.reshape(-1)])
    assert np.sum(model.predict(X) != Y) == best


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 0], "got one label each"),
        (np.zeros((3, 1)), "at least two labels"),
        (np.array([[0, 2], [1, 0], [1, 1]]), "takes 0 and 1"),
        (np.zeros((2, 2)), "X has 3 rows, but y has 2"),
    ],
)
def test_bad_label_sets(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultilabelClassifier().fit(np.eye(3), y)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"k": "l", "l": "k"}, "cycle"),
        ({"top": {"k": {}, "under": {"k": {}}}}, "twice"),
        ({"k": None, "l": None}, "not in the hierarchy"),
    ],
)
def test_bad_trees(tree: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HierarchicalClassifier(tree=tree).fit(np.eye(3), ["k", "l", "m"])


def test_trees_in_every_form() -> None:
    model, X, y = fitted("hierarchy", tol=1e-6)
    short = np.array([label[-1] for label in y])
    parents = {"x": "a", "y": "a", "u": "b", "v": "b"}
    for tree in (parents, {"a": {"x": {}, "y": {}}, "b": {"u": None, "v": None}}, Tree.from_parents(parents)):
        other = HierarchicalClassifier(lam=1e-2, tol=1e-6, tree=tree).fit(X, short)
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-5)
    assert sorted(other.classes_) == ["u", "v", "x", "y"]
    assert model.predict_path(X)[0] == [model.predict(X)[0][:1], model.predict(X)[0]]


def test_inner_nodes_may_be_labels() -> None:
    X, F = rows()
    y = np.array(["a", "a/x", "a/y", "b"])[np.argmax(F, axis=1)]
    model = HierarchicalClassifier(lam=1e-2).fit(X, y)
    assert model.classes_.tolist() == ["a", "a/x", "a/y", "b"]
    assert "a" in model.predict(X)
    with pytest.raises(ValueError, match="inner node"):
        HierarchicalClassifier(nodes="leaves").fit(X, y)


def test_grades() -> None:
    model, X, y = fitted("ordinal")
    assert model.grades_.tolist() == [1, 2, 5, 6]
    assert set(model.predict(X)) <= {1, 2, 5, 6}
    assert np.mean(np.abs(model.predict(X) - y)) < np.mean(np.abs(np.median(y) - y))
    order = np.argsort(model.scores(X))
    assert (np.diff(model.predict(X)[order]) >= 0).all()
    with pytest.raises(ValueError, match="one grade only"):
        OrdinalRegressor().fit(X, np.ones(len(X)))


@pytest.mark.filterwarnings("ignore::bmrm.MeaninglessObjectiveWarning")  # 12 of 38 positives
@pytest.mark.parametrize("score", ["roc_area", "f1", "fbeta", "precision_at_k", "recall_at_k", "break_even"])
def test_every_score(score: str) -> None:
    parameters = {"fbeta": {"beta": 2.0}, "precision_at_k": {"k": 12}, "recall_at_k": {"k": 0.25}}.get(score)
    model, X, y = fitted("score", score=score, score_params=parameters)
    f, positive = model.decision_function(X), y == "yes"
    assert np.array_equal(model.predict(X) == "yes", f > 0.0)
    found = model.score(X, y)
    if score == "roc_area":
        assert found == metrics.roc_auc_score(positive, f)
    elif score in ("f1", "fbeta"):
        beta = 2.0 if score == "fbeta" else 1.0
        assert found == metrics.fbeta_score(positive, f > 0.0, beta=beta)
    else:
        n = {"precision_at_k": 12, "recall_at_k": 30, "break_even": positive.sum()}[score]
        assert np.sum(f > 0.0) == n
        measure = metrics.recall_score if score == "recall_at_k" else metrics.precision_score
        assert found == pytest.approx(measure(positive, f > 0.0))
    assert clone(model).get_params()["score"] == score


def test_bad_scores() -> None:
    X, F = rows()
    with pytest.raises(ValueError, match="score must be one of"):
        ScoreClassifier(score="accuracy").fit(X, F[:, 0] > 0)
    with pytest.raises(ValueError, match="Only binary classification"):
        ScoreClassifier().fit(X, np.argmax(F, axis=1))
    with pytest.raises(ValueError, match="one class only"):
        ScoreClassifier().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="takes no sample weights"):
        ScoreClassifier(score="f1").fit(X, F[:, 0] > 0, sample_weight=np.arange(1.0, 121.0))
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    part = ScoreClassifier(score="f1", lam=1e-2).fit(X[weight > 0], F[weight > 0, 0] > 0)
    model = ScoreClassifier(score="f1", lam=1e-2).fit(X, F[:, 0] > 0, sample_weight=weight)
    np.testing.assert_array_equal(model.coef_, part.coef_)


def test_a_constant_is_learned_where_the_score_needs_one() -> None:
    """Few positives, and columns that are not centered: without a constant nearly all rows would count as positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10)) + 0.5
    f = X @ rng.normal(size=10) + rng.normal(size=1000)
    y = f > np.quantile(f, 0.95)
    model = ScoreClassifier(score="f1", lam=1e-2).fit(X, y)
    assert model.score(X, y) > 0.5
    assert model.score(X, y) == metrics.f1_score(y, model.predict(X))
    assert not ScoreClassifier(score="break_even").fit_intercept


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.filterwarnings("ignore::bmrm.ConstantModelWarning")  # the largest lam
def test_the_ranker_is_searched_over_whole_queries(routing: None) -> None:
    X, F = rows(240)
    y, qid = np.digitize(F[:, 0], [0.0, 1.0]), np.arange(240) // 12
    ranker = Ranker().set_fit_request(qid=True).set_score_request(qid=True)
    search = GridSearchCV(ranker, {"lam": [1e-3, 1e-1, 1e3]}, cv=GroupKFold(4))
    search.fit(X, y, qid=qid, groups=qid)
    assert search.best_params_["lam"] < 1e3
    best = search.cv_results_["mean_test_score"]
    assert np.isfinite(best).all()
    folds = [
        clone(ranker).set_params(**search.best_params_).fit(X[a], y[a], qid=qid[a]).score(X[b], y[b], qid=qid[b])
        for a, b in GroupKFold(4).split(X, y, groups=qid)
    ]
    assert best.max() == pytest.approx(np.mean(folds))
    scores = cross_val_score(
        make_pipeline(StandardScaler(), ranker), X, y, cv=GroupKFold(4), params={"qid": qid, "groups": qid}
    )
    assert np.isfinite(scores).all()


def test_queries() -> None:
    X, F = rows()
    y, qid = np.digitize(F[:, 0], [0.0, 1.0]), np.arange(len(X)) // 12
    mixed = np.random.default_rng(1).permutation(len(X))
    one = Ranker(lam=1e-2, tol=1e-6).fit(X, y, qid=qid)
    other = Ranker(lam=1e-2, tol=1e-6).fit(X[mixed], y[mixed], qid=[f"query {q}" for q in qid[mixed]])
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-5)
    assert one.score(X, y, qid=qid) == pytest.approx(other.score(X[mixed], y[mixed], qid=qid[mixed]), abs=1e-3)
    by_query = [metrics.ndcg_score([y[qid == q]], [one.predict(X[qid == q])], k=5) for q in np.unique(qid)]
    assert one.score(X, y, qid=qid, k=5) == pytest.approx(np.mean(by_query))
    shares = 1.0 + np.arange(10)
    weighted = one.score(X, y, qid=qid, k=5, sample_weight=shares[qid])
    assert weighted == pytest.approx(np.average(by_query, weights=shares))
    with pytest.raises(ValueError, match="qid must have one number"):
        Ranker().fit(X, y, qid=[1, 2])
    with pytest.raises(ValueError, match="no query is left"):
        Ranker().fit(X, np.ones(len(X)), qid=qid)
    with pytest.raises(ValueError, match="nothing to rank"):
        one.score(X, np.ones(len(X)), qid=qid)
    with pytest.warns(UserWarning, match="leaves out 1 of 11 queries"):
        Ranker(lam=1e-2).fit(np.vstack([X, X[:1]]), [*y, 1], qid=[*qid, 99])


def test_rows_without_queries_are_one_with_a_warning() -> None:
    X, F = rows()
    y, one = np.digitize(F[:, 0], [0.0, 1.0]), np.zeros(len(X), dtype=int)
    with pytest.warns(UserWarning, match=r"no qid: all rows are one query.*set_fit_request\(qid=True\)"):
        model = Ranker(lam=1e-2).fit(X, y)
    known = Ranker(lam=1e-2).fit(X, y, qid=one)
    np.testing.assert_array_equal(model.coef_, known.coef_)
    with pytest.warns(UserWarning, match="no qid"):
        assert model.score(X, y) == known.score(X, y, qid=one)


def test_a_search_that_hands_on_no_queries_warns() -> None:
    X, F = rows()
    y, qid = np.digitize(F[:, 0], [0.0, 1.0]), np.arange(len(X)) // 12
    search = GridSearchCV(Ranker(), {"lam": [1e-2, 1e-1]}, cv=GroupKFold(2))
    with pytest.warns(UserWarning, match="no qid: all rows are one query.*'groups' go to the splitter only"):
        search.fit(X, y, groups=qid)


def test_the_ranker_learns_pairs_by_their_ndcg() -> None:
    """On noisy queries, where the bound of NDCG by permutations is flat."""
    rng = np.random.default_rng(3)
    X, qid = rng.normal(size=(600, 5)), np.arange(600) // 20
    y = np.clip(np.round(X[:, 0] + 2.0 * rng.normal(size=600)), 0, 3)
    model = Ranker(lam=1e-3).fit(X, y, qid=qid)
    assert model.loss_ == NdcgPairs()
    assert model.converged_
    assert abs(model.coef_[0, 0]) > 3.0 * np.abs(model.coef_[0, 1:]).max()
    with pytest.warns(ConstantModelWarning, match="the bound of the loss 'ndcg' is flat"):
        flat = Ranker(loss="ndcg", loss_params={"ties": "rows"}, lam=1e-3, max_iter=50).fit(X, y, qid=qid)
    assert np.abs(flat.coef_).max() < 1e-2 * np.abs(model.coef_).max()


@pytest.mark.parametrize("loss", ["ndcg", "ndcg_pairs", "pairwise_rank", "mrr", "expected_rank_utility"])
def test_every_loss_of_rankings(loss: str) -> None:
    model, X, y = fitted("ranker", loss=loss)
    assert model.converged_
    assert model.score(X, y, qid=np.arange(len(X)) // 12) > 0.7


def test_softmax_is_what_scikit_learn_finds() -> None:
    from sklearn.linear_model import LogisticRegression

    model, X, y = fitted("classifier", loss=Softmax(), C=0.5, lam=1e-4, tol=1e-9)
    peer = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-4)
