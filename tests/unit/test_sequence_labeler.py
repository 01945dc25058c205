"""SequenceLabeler and StructuredPredictor: what is learned, how it is told, bad input, early ends."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sentences import attributes, drawn, generator
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import bmrm
from bmrm import DataError, SequenceLabeler, Status

LOSSES = ("structured_log", "structured_hinge")


@pytest.fixture(scope="module")
def data():
    rows, labels = drawn(generator())
    return attributes(rows), labels


@pytest.fixture(scope="module", params=LOSSES)
def fitted(request, data):
    return SequenceLabeler(loss=request.param, lam=0.01).fit(*data)


def problem_of(model, X, y, lam=0.01, weight=None):
    """The same problem, put together by hand."""
    place = {label: code for code, label in enumerate(model.classes_.tolist())}
    codes = [np.array([place[label] for label in labels]) for labels in y]
    risk = bmrm.StructuredRisk(model.attributes_.encode(X), codes, model.loss_, weight)
    return bmrm.Problem(risk, "l2", lam)


def test_the_objective_is_the_library_s(fitted, data):
    problem = problem_of(fitted, *data)
    assert fitted.objective_ == pytest.approx(problem.objective(fitted.coef_), rel=1e-12)
    best = bmrm.solve(problem, tol=1e-7)
    assert fitted.lower_bound_ <= best.certificate.upper
    assert fitted.converged_
    assert fitted.status_ is Status.CONVERGED
    assert fitted.relative_gap_ <= 1e-3
    assert fitted.certificate_.gap == fitted.gap_
    assert fitted.n_iter_ == len(fitted.history_)
    assert fitted.lam_ == 0.01


def test_predictions(fitted, data):
    X, y = data
    found = fitted.predict(X)
    assert [len(labels) for labels in found] == [len(labels) for labels in y]
    assert all(type(label) is str for labels in found for label in labels)
    right = sum(a == b for one, other in zip(found, y) for a, b in zip(one, other))
    assert fitted.score(X, y) == right / sum(map(len, y)) > 0.9
    assert fitted.classes_.tolist() == ["B-NP", "B-VP", "I-NP", "O"]


def test_predictions_are_those_of_all_labelings(data):
    X, y = data
    model = SequenceLabeler(lam=0.01).fit(X, y)
    chain, w = model.loss_.model, model.coef_
    for sentence, found, marginals in zip(X[:5], model.predict(X[:5]), model.predict_marginals(X[:5])):
        tokens = model.attributes_.encode([sentence])[0]
        labelings = list(product(range(4), repeat=len(sentence)))
        scores = np.array([w[i] @ v for i, v in (chain.joint_feature(tokens, np.array(each)) for each in labelings)])
        assert found == model.classes_[list(labelings[int(np.argmax(scores))])].tolist()
        shares = np.exp(scores - logsumexp(scores))
        for t, token in enumerate(marginals):
            for code, label in enumerate(model.classes_.tolist()):
                wanted = sum(share for share, each in zip(shares, labelings) if each[t] == code)
                assert token[label] == pytest.approx(wanted, abs=1e-12)


def test_marginals_as_arrays(data):
    X, y = data
    model = SequenceLabeler(lam=0.01).fit(X, y)
    tables, dicts = model.predict_marginals(X, as_arrays=True), model.predict_marginals(X)
    assert tables[0].shape == (len(X[0]), 4)
    assert [list(token.values()) for token in dicts[0]] == tables[0].tolist()
    assert all(np.allclose(table.sum(axis=1), 1.0) for table in tables)
    hinge = SequenceLabeler(loss="structured_hinge", lam=0.01).fit(X, y)
    assert not hasattr(hinge, "predict_marginals")
    with pytest.raises(AttributeError, match="predict_marginals") as error:
        hinge.predict_marginals(X)
    assert "needs loss='structured_log'" in str(error.value.__cause__ or error.value)


def test_unseen_attributes_are_ignored(fitted):
    known = [{"word": "cat"}]
    more = [{"word": "cat", "color": "red", "size": 3.0}]
    assert fitted.predict([known]) == fitted.predict([more])
    assert len(fitted.predict([[{"word": "unheard"}]])[0]) == 1


def test_tables(fitted):
    top = fitted.top_features(5)
    assert len(top) == 5
    assert top[0]._fields == ("attribute", "label", "weight")
    sizes = [abs(row.weight) for row in fitted.top_features(1000)]
    assert sizes == sorted(sizes, reverse=True)
    assert str(top).splitlines()[0].split() == ["attribute", "label", "weight"]
    assert len(str(top).splitlines()) == 6
    assert {row.label for row in fitted.top_features(10, label="O")} == {"O"}
    with pytest.raises(ValueError, match="label 'X' is not one of"):
        fitted.top_features(label="X")
    table = fitted.transition_weights()
    pairs = {(row.source, row.target): row.weight for row in table}
    assert pairs["B-NP", "I-NP"] == max(pairs.values())
    assert ("I-NP", "B-VP") in pairs
    assert ("(start)", "O") in pairs
    assert ("O", "(end)") in pairs
    chain = fitted.loss_.model
    starts = [pairs["(start)", label] for label in fitted.classes_]
    assert starts == fitted.coef_[chain.blocks()["start"]].tolist()


def test_which_weights_there_are(data):
    X, y = data
    sizes = {}
    for emissions, transitions, start_end in product(("seen", "all"), ("seen", "all", "none"), (True, False)):
        options = {"emissions": emissions, "transitions": transitions, "start_end": start_end}
        model = SequenceLabeler(lam=0.1, **options).fit(X, y)
        chain = model.loss_.model
        sizes[emissions, transitions, start_end] = model.coef_.size
        blocks = {name: block.stop - block.start for name, block in chain.blocks().items()}
        assert blocks["transitions"] == {"all": 16, "none": 0}.get(transitions, blocks["transitions"])
        assert blocks["start"] == blocks["end"] == 4 * start_end
        if emissions == "all":
            assert blocks["emissions"] == 4 * model.attributes_.n_attributes
    assert sizes["seen", "seen", True] < sizes["all", "all", True]


def test_arrays_are_the_same_as_attributes(data):
    X, y = data
    named = SequenceLabeler(lam=0.01, tol=1e-8).fit(X, y)
    encoded = named.attributes_.encode(X)
    for matrices in ([each.toarray() for each in encoded], [csr_array(each) for each in encoded], encoded):
        plain = SequenceLabeler(lam=0.01, tol=1e-8).fit(matrices, y)
        assert np.allclose(plain.coef_, named.coef_, atol=1e-6)
        assert plain.predict(matrices) == named.predict(X)
    assert plain.top_features(1)[0].attribute.isdigit()


def test_hashing(data):
    X, y = data
    model = SequenceLabeler(lam=0.01, hashing=2**12).fit(X, y)
    assert model.attributes_.n_attributes == 2**12
    exact = SequenceLabeler(lam=0.01).fit(X, y)
    assert model.objective_ == pytest.approx(exact.objective_, rel=5e-3)
    assert model.predict(X) == pickle.loads(pickle.dumps(model)).predict(X)


def test_weights_mean_repetition(data):
    X, y = data
    options = {"lam": 0.01, "tol": 1e-9}
    weight = np.arange(len(X)) % 3
    repeated = [i for i, times in enumerate(weight) for _ in range(times)]
    weighted = SequenceLabeler(**options).fit(X, y, sample_weight=weight)
    plain = SequenceLabeler(**options).fit([X[i] for i in repeated], [y[i] for i in repeated])
    assert weighted.objective_ == pytest.approx(plain.objective_, rel=1e-8)
    assert np.allclose(weighted.coef_, plain.coef_, atol=1e-4)
    assert weighted.score(X, y, sample_weight=weight) == pytest.approx(
        plain.score([X[i] for i in repeated], [y[i] for i in repeated])
    )


def test_C_is_for_the_sum(data):
    X, y = data
    by_C = SequenceLabeler(C=2.0).fit(X, y)
    by_lam = SequenceLabeler(lam=1.0 / (2.0 * len(X))).fit(X, y)
    assert np.array_equal(by_C.coef_, by_lam.coef_)
    assert by_C.to_model().lam == by_lam.lam_


def test_costs_and_scaling(data):
    X, y = data
    dear = {label: {"O": 5.0} for label in ("B-NP", "B-VP", "I-NP")}
    model = SequenceLabeler(loss="structured_hinge", lam=0.1, costs=dear).fit(X, y)
    assert model.loss_.model.costs[0].tolist() == [0.0, 1.0, 1.0, 5.0]
    with pytest.raises(ValueError, match="costs are for the loss structured_hinge"):
        SequenceLabeler(costs=dear).fit(X, y)
    with pytest.raises(ValueError, match="which is not among"):
        SequenceLabeler(loss="structured_hinge", costs={"X": {"O": 1.0}}).fit(X, y)
    slack = SequenceLabeler(loss="structured_hinge", scaling="slack", lam=0.1).fit(X, y)
    assert slack.loss_.scaling == "slack"
    with pytest.raises(ValueError, match="no parameter 'scaling'"):
        SequenceLabeler(scaling="slack").fit(X, y)
    with pytest.raises(ValueError, match="must be 'margin' or 'slack'"):
        SequenceLabeler(loss="structured_hinge", scaling="both").fit(X, y)


def test_labels_may_be_numbers(data):
    X, y = data
    numbers = {"B-NP": 7, "I-NP": 3, "B-VP": 5, "O": 1}
    model = SequenceLabeler(lam=0.01).fit(X, [np.array([numbers[label] for label in labels]) for labels in y])
    assert model.classes_.tolist() == [1, 3, 5, 7]
    found = model.predict(X)
    assert all(type(label) is int for labels in found for label in labels)


def test_scikit_learn_s_tools(data):
    X, y = data
    model = SequenceLabeler(lam=0.01, start_end=False)
    assert clone(model).get_params() == model.get_params()
    assert len(cross_val_score(model, X, y, cv=3)) == 3
    search = GridSearchCV(model, {"lam": [0.1, 0.01], "loss": LOSSES}, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.predict(X[:1])[0]
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_model_file(fitted, data, tmp_path):
    X, _ = data
    path = tmp_path / "m.bmrm"
    fitted.to_model().save(path)
    model = bmrm.load(path)
    assert isinstance(model, bmrm.SequenceModel)
    assert model.predict(X) == fitted.predict(X)
    assert model.certificate == fitted.certificate_
    assert model.top_features(7) == fitted.top_features(7)
    assert model.transitions() == fitted.transition_weights()
    assert model.loss.name == fitted.loss
    assert model.status is Status.CONVERGED
    assert str(model).startswith(fitted.loss)
    if fitted.loss == "structured_hinge":
        with pytest.raises(DataError, match="yields no probabilities"):
            model.marginals(X)
    content = path.read_bytes()
    assert b"pickle" not in content


def test_damaged_model_files(fitted, tmp_path):
    path = tmp_path / "m.bmrm"
    fitted.to_model().save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(3)
    for _ in range(60):
        damaged = bytearray(content)
        for place in rng.integers(len(content), size=3):
            damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged[: rng.integers(len(content))] if rng.random() < 0.3 else damaged))
        with contextlib.suppress(DataError):  # and nothing else
            bmrm.load(path)


def test_names_survive_the_file(tmp_path):
    names = ["", "a b", "tab\t", "line\nbreak", "ü", "\udc80", "日本", "x" * 300]
    X = [[[name] for name in names]]
    model = SequenceLabeler(lam=0.1).fit(X, [["a", "b"] * 4])
    model.to_model().save(tmp_path / "m.bmrm")
    assert bmrm.load(tmp_path / "m.bmrm").attributes.names == names


def test_warm_start(data):
    X, y = data
    model = SequenceLabeler(lam=0.01, warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first
    model.fit([*X, [{"word": "new"}]], [*y, ["O"]])  # other attributes: begins anew
    assert model.converged_
    model.set_params(emissions="all").fit(X, y)
    assert model.converged_


def test_warns_with_gap_and_advice(data):
    with pytest.warns(ConvergenceWarning, match=r"SequenceLabeler did not converge: .*max_iter") as caught:
        model = SequenceLabeler(max_iter=2, lam=1e-6).fit(*data)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not model.converged_
    assert model.status_ is Status.ITERATION_LIMIT
    assert model.predict(data[0])


def test_ctrl_c_leaves_a_usable_object():
    rows, y = drawn(generator(1), 300)
    X = attributes(rows)
    model = SequenceLabeler(loss="structured_hinge", lam=1e-9, tol=0.0, solver="bmrm")
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        timer.join()
    assert model.status_ is Status.INTERRUPTED
    assert len(model.predict(X)) == len(X)
    assert model.lower_bound_ <= model.objective_


def test_callbacks_see_iterations_and_stop_the_fit(data):
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    X, y = data
    seen = []

    class Watcher:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if fitted_estimator is not None and context.task_name == "iteration":
                seen.append(fitted_estimator.score(X, y))
            return len(seen) >= 3

    model = SequenceLabeler(lam=1e-4).set_callbacks(Watcher()).fit(X, y)
    assert model.status_ is Status.STOPPED
    assert model.n_iter_ == len(seen) == 3


def test_verbose_shows_the_gap(data, capsys):
    SequenceLabeler(verbose=True, lam=0.01).fit(*data)
    shown = capsys.readouterr()
    assert "gap" in shown.err + shown.out


def test_pair_attributes_of_arrays(data, tmp_path):
    rng = np.random.default_rng(2)
    X = [(rng.normal(size=(n, 3)), rng.normal(size=(n, 2))) for n in (1, 2, 4, 3)]
    y = [rng.integers(0, 3, size=len(tokens)).tolist() for tokens, _ in X]
    model = SequenceLabeler(lam=0.01).fit(X, y)
    block = model.loss_.model.blocks()["pairs"]
    assert block.stop - block.start == 2 * len(model.classes_) ** 2
    assert model.coef_[block].any()
    model.to_model().save(tmp_path / "m.bmrm")
    assert bmrm.load(tmp_path / "m.bmrm").predict(X) == model.predict(X)


def test_threads_change_nothing(fitted, data):
    again = clone(fitted).set_params(n_threads=1).fit(*data)
    other = clone(fitted).set_params(n_threads=3).fit(*data)
    assert np.array_equal(again.coef_, other.coef_)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[["a"]]], [["A"], ["B"]], "X has 1 sequences and y has 2"),
        ([[["a"], ["b"]], [["a"]]], [["A", "B"], ["A", "B"]], "sequence 1: X has 1 tokens and y has 2 labels"),
        ([[["a"]], []], [["A"], []], "sequence 1 is empty"),
        ([], [], "there are no sequences"),
        ([[["a"]]], "A", "y must be a list with a list of labels for each sequence, got str"),
        ([[["a"]]], None, "y must be a list with a list of labels for each sequence, got NoneType"),
        ([[["a"]], [["b"]]], ["A", "B"], "sequence 0: its labels are 'A'; expected a list"),
        ([[["a"]]], [["A"]], "y has one label only, 'A'"),
        ([[["a"], ["b"]]], [["A", 1]], "labels must be numbers, or text"),
        ([[["a"], ["b"]]], [[(1, 2), (3, 4)]], "labels must be numbers, or text, not tuple"),
        ([[["a"], ["b"]]], [[{}, []]], "labels must be numbers, or text"),
        ([[["a"], ["b"]]], [[1.0, float("nan")]], "a label is NaN"),
        ([[{"a": np.nan}, ["b"]]], [["A", "B"]], "sequence 0, token 0: attribute 'a' is nan"),
        ([np.array([[np.nan], [1.0]])], [["A", "B"]], "not finite"),
    ],
)
def test_bad_input(X, y, message):
    with pytest.raises(ValueError) as error:
        SequenceLabeler().fit(X, y)
    assert message in str(error.value)


def test_bad_parameters(data):
    X, y = data
    for parameters, message in (
        ({"loss": "hinge"}, "unknown structured loss 'hinge'"),
        ({"loss": bmrm.losses.Hinge()}, "loss must be one of structured_hinge, structured_log"),
        ({"emissions": "some"}, "emissions must be 'seen' or 'all', got 'some'"),
        ({"transitions": "some"}, "transitions must be 'seen', 'all' or 'none'"),
        ({"hashing": 0}, "hashing must be a number of columns"),
        ({"lam": 0.5, "C": 1.0}, "were both given"),
        ({"tol": -1.0}, "tol must be"),
        ({"n_threads": 0}, "n_threads must be"),
    ):
        with pytest.raises(ValueError) as error:
            SequenceLabeler(**parameters).fit(X, y)
        assert message in str(error.value)
    with pytest.raises(ValueError, match="one number for each of the 30 sequences of X"):
        SequenceLabeler().fit(X, y, sample_weight=[1.0])
    with pytest.raises(ValueError, match="sample_weight of sequence 0 is -1"):
        SequenceLabeler().fit(X, y, sample_weight=[-1.0] * 30)


def test_bad_scores(fitted, data):
    X, y = data
    with pytest.raises(ValueError, match="X has 30 sequences and y has 1"):
        fitted.score(X, y[:1])
    with pytest.raises(ValueError, match="sequence 0: X has 1 tokens and y has 2 labels"):
        fitted.score([[{"word": "a"}]], [["O", "O"]])
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        fitted.predict([X[0], []])
    assert fitted.score(X[:1], [["never seen"] * len(X[0])]) == 0.0


def test_losses_of_sequences_are_refused_elsewhere():
    with pytest.raises(
        ValueError, match=r"loss 'structured_log' is for outputs of a structured model.*SequenceLabeler"
    ):
        bmrm.LinearClassifier(loss="structured_log").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"bmrm.losses.StructuredHinge\(model\)"):
        bmrm.losses.get("structured_hinge")
