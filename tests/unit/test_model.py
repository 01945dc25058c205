from __future__ import annotations

import io
import json
import random
import time
import zipfile
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

import bmrm
from bmrm import DataError, Status

CERTIFICATE = bmrm.Certificate.of(0.5, 0.4999, "auto")
ONE_ROW = np.array([[1.0, -2.0, 0.5]])
LOSSES = [loss for cls in bmrm.losses.LOSSES.values() for loss in cls.examples()]


# For each task: the number of scores, the labels (None: there are none, or they follow from the loss), the thresholds.
SHAPES = {
    "multilabel": (3, ["a", "b", "c"], [0.125]),
    "multivariate": (2, None, None),
    "ordinal": (1, [1.0, 2.0, 4.0], [-0.5, 1.0]),
    "classification": (1, [-1.0, 1.0], None),
}


def make(loss=None, **changes):
    loss = bmrm.losses.Hinge() if loss is None else loss
    k, classes, thresholds = SHAPES.get(loss.task, (1, None, None))
    if loss.task == "hierarchy":
        k = loss.tree.n_nodes
    if isinstance(loss, bmrm.losses.VectorLoss) and loss.task == "classification":
        k, classes = 3, ["a", "b", "c"]
    n_problems = 1 if isinstance(loss, bmrm.losses.VectorLoss) else len(changes.get("coef", [0]))
    settings = {
        "coef": (np.arange(3.0 * k).reshape(k, 3) * 7.0 % 5.0) - np.array([[1.0, 2.0, 0.5]]) if k > 1 else ONE_ROW,
        "intercept": np.array([0.25, *np.arange(k - 1)]),
        "loss": loss,
        "classes": None if classes is None else np.array(classes),
        "thresholds": thresholds,
        "regularizer": "l2",
        "lam": 1e-2,
        "solver": "auto",
        "tol": 1e-3,
        "certificates": [CERTIFICATE] * n_problems,
        "statuses": [Status.CONVERGED] * n_problems,
        "config": {"seed": 3},
        "history": {"iterations": 5},
    }
    return bmrm.Model(**settings | changes)


def three_classes(classes=("a", "b", "c"), loss=None, **changes):
    coef, intercept = np.arange(9.0).reshape(3, 3) % 5, np.array([0.0, 1.0, -1.0])
    return make(loss, coef=coef, intercept=intercept, classes=np.array(classes), **changes)


X = np.random.default_rng(0).normal(size=(50, 3))


def assert_same(a, b):
    for name in ("coef", "intercept", "thresholds"):
        assert np.array_equal(getattr(a, name), getattr(b, name))
    if a.classes is None:
        assert b.classes is None
    else:
        assert np.array_equal(a.classes, b.classes)
        assert a.classes.dtype == b.classes.dtype
    for name in ("regularizer", "lam", "solver", "tol", "certificates", "statuses", "version", "task", "n_features"):
        assert getattr(a, name) == getattr(b, name), name
    assert dict(a.config) == dict(b.config)
    assert dict(a.history) == dict(b.history)
    assert type(a.loss) is type(b.loss)
    assert repr(a.loss) == repr(b.loss)
    assert np.array_equal(a.predict(X), b.predict(X))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_round_trip_of_every_loss(tmp_path, loss):
    model = make(loss)
    model.save(tmp_path / "m.bmrm")
    assert_same(model, bmrm.load(tmp_path / "m.bmrm"))


@pytest.mark.parametrize(
    "classes", [["a", "ü", "a longer name"], [0, 1, 2], [0.5, 1.5, 2.5], np.array([3, 4, 5], np.uint8)]
)
def test_round_trip_of_labels(tmp_path, classes):
    model = three_classes(classes)
    model.save(tmp_path / "m.bmrm")
    assert_same(model, bmrm.load(tmp_path / "m.bmrm"))


def test_labels_as_objects(tmp_path):
    model = make(classes=np.array(["no", "yes"], dtype=object))
    model.save(tmp_path / "m.bmrm")
    assert bmrm.load(tmp_path / "m.bmrm").classes.tolist() == ["no", "yes"]
    with pytest.raises(DataError, match="numbers or text"):
        make(classes=np.array(["no", 1], dtype=object)).save(tmp_path / "m.bmrm")
    with pytest.raises(DataError, match="numbers or text"):
        make(classes=np.array(["2020", "2021"], dtype="M8[Y]")).save(tmp_path / "m.bmrm")
    assert bmrm.load(tmp_path / "m.bmrm").classes.tolist() == ["no", "yes"]


def test_no_bound_is_kept(tmp_path):
    model = make(certificates=[bmrm.Certificate.of(1.0, -np.inf, "lbfgs")], statuses=[Status.INTERRUPTED])
    model.save(tmp_path / "m.bmrm")
    again = bmrm.load(tmp_path / "m.bmrm")
    assert again.certificate == model.certificate
    assert again.status is Status.INTERRUPTED


def test_predictions():
    model = make()
    scores = X @ [1.0, -2.0, 0.5] + 0.25
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-14, atol=1e-14)
    assert np.array_equal(model.predict(X), np.where(scores >= 0, 1.0, -1.0))
    assert np.array_equal(model.predict(sparse.csr_array(X)), model.predict(X))
    shifted = model.decision_function(X, offset=np.full(50, 2.0))
    np.testing.assert_allclose(shifted, scores + 2.0, rtol=1e-14, atol=1e-14)
    several = three_classes()
    assert several.decision_function(X).shape == (50, 3)
    best = np.argmax(X @ several.coef.T + several.intercept, axis=1)
    assert several.predict(X).tolist() == ["abc"[i] for i in best]
    poisson = make(bmrm.losses.Poisson())
    np.testing.assert_allclose(poisson.predict(X), np.exp(scores))


@pytest.mark.parametrize("width", [2, 4])
def test_other_widths_are_refused(width):
    with pytest.raises(DataError, match=f"X has {width} features, but the model was trained with 3"):
        make().predict(np.ones((5, width)))


def test_bad_rows_are_refused():
    with pytest.raises(ValueError, match="not finite in row 1, column 2"):
        make().predict([[1.0, 2.0, 3.0], [1.0, 2.0, np.nan]])


def test_several_certificates_add_up():
    ends = [(1.0, 0.9), (2.0, 1.9), (3.0, 2.9)]
    model = three_classes(
        certificates=[bmrm.Certificate.of(u, v, "auto") for u, v in ends],
        statuses=[Status.CONVERGED, Status.TIME_LIMIT, Status.STALLED],
    )
    assert model.certificate.upper == 6.0
    assert model.certificate.gap == pytest.approx(0.3)
    assert model.status is Status.TIME_LIMIT


@pytest.mark.parametrize(
    "changes",
    [
        {"classes": None},
        {"classes": np.array([1.0, 2.0, 3.0])},
        {"intercept": np.zeros(2)},
        {"certificates": []},
        {"coef": np.zeros((0, 3)), "certificates": [], "statuses": [], "intercept": np.zeros(0)},
        {"loss": bmrm.losses.Huber()},
        {"thresholds": [0.0]},
    ],
)
def test_parts_that_do_not_fit(changes):
    with pytest.raises(ValueError):
        make(**{"classes": np.array([0, 1])} | changes)


@pytest.mark.parametrize(
    ("loss", "changes", "message"),
    [
        ("multilabel_hinge", {"thresholds": None}, "thresholds have shape None"),
        ("multilabel_hinge", {"thresholds": [0.0, 1.0]}, r"thresholds have shape \(2,\)"),
        ("multilabel_hinge", {"classes": None}, "needs classes"),
        ("multilabel_hinge", {"classes": np.arange(4)}, "does not fit 3 rows"),
        ("multilabel_hinge", {"certificates": [CERTIFICATE] * 3}, "need 1 certificates"),
        ("softmax", {"classes": np.arange(2)}, "does not fit 3 rows"),
        ("softmax", {"statuses": [Status.CONVERGED] * 3}, "need 1 certificates"),
        ("hierarchical_hinge", {"classes": np.arange(3)}, "does not fit 4 rows"),
        ("hierarchical_hinge", {"coef": np.ones((3, 3)), "intercept": np.zeros(3)}, "does not fit 3 rows"),
        ("ordinal", {"thresholds": [1.0, 0.0]}, "thresholds between grades fall"),
        ("ordinal", {"thresholds": [0.0]}, "thresholds have shape"),
        ("ordinal", {"classes": np.array([2.0, 1.0, 4.0])}, "does not fit"),
        ("ndcg", {"classes": np.arange(2)}, "has no classes"),
        ("roc_area", {"coef": np.ones((3, 3)), "intercept": np.zeros(3), "classes": np.arange(3)}, "one score"),
    ],
)
def test_parts_that_do_not_fit_the_task(loss, changes, message):
    with pytest.raises(ValueError, match=message):
        make(bmrm.losses.get(loss), **changes)


def test_predictions_by_task():
    sets = make(bmrm.losses.MultilabelHinge())
    scores = X @ sets.coef.T + sets.intercept
    assert np.array_equal(sets.predict(X), scores > 0.125)
    grades = make(bmrm.losses.Ordinal())
    f = grades.decision_function(X)
    assert np.array_equal(grades.predict(X), np.where(f > 1.0, 4.0, np.where(f > -0.5, 2.0, 1.0)))
    assert {1.0, 2.0, 4.0} == set(grades.predict(X))
    tree = bmrm.losses.Tree.from_paths(["a/x", "a/y", "b"])
    nodes = make(bmrm.losses.HierarchicalSoftmax(tree))
    sums = (X @ nodes.coef.T + nodes.intercept) @ tree.on_paths().T
    assert nodes.classes.tolist() == ["a/x", "a/y", "b"]
    assert nodes.predict(X).tolist() == nodes.classes[np.argmax(sums[:, [1, 2, 3]], axis=1)].tolist()
    assert np.array_equal(make(bmrm.losses.Ndcg()).predict(X), make(bmrm.losses.Ndcg()).decision_function(X))
    several = make(bmrm.losses.MultivariateRegression())
    np.testing.assert_allclose(several.predict(X), X @ several.coef.T + several.intercept, rtol=1e-13, atol=1e-13)
    both = make(bmrm.losses.Softmax(), coef=ONE_ROW, intercept=[0.25], classes=np.array(["n", "p"]))
    assert np.array_equal(both.predict(X) == "p", X @ ONE_ROW[0] + 0.25 >= 0.0)


def test_probabilities():
    softmax = make(bmrm.losses.Softmax())
    odds = np.exp(X @ softmax.coef.T + softmax.intercept)
    np.testing.assert_allclose(softmax.predict_proba(X), odds / odds.sum(axis=1, keepdims=True), rtol=1e-12)
    f = X @ ONE_ROW[0] + 0.25
    for loss in (bmrm.losses.Softmax(), bmrm.losses.Logistic()):
        both = make(loss, coef=ONE_ROW, intercept=[0.25], classes=np.array(["n", "p"]))
        np.testing.assert_allclose(both.predict_proba(X)[:, 1], 1.0 / (1.0 + np.exp(-f)), rtol=1e-12)
    rest = three_classes(loss=bmrm.losses.Logistic())
    shares = 1.0 / (1.0 + np.exp(-(X @ rest.coef.T + rest.intercept)))
    np.testing.assert_allclose(rest.predict_proba(X), shares / shares.sum(axis=1, keepdims=True), rtol=1e-12)
    nodes = make(bmrm.losses.HierarchicalSoftmax())
    assert nodes.predict_proba(X).shape == (50, 3)
    with pytest.raises(DataError, match="'hinge' yields no probabilities"):
        make().predict_proba(X)


def test_a_tree_is_plain_in_the_file(tmp_path):
    tree = bmrm.losses.Tree.from_paths(["a/x", "a/ü", "b"])
    model = make(bmrm.losses.HierarchicalHinge(tree, nodes="all"))
    model.save(tmp_path / "m.bmrm")
    with (tmp_path / "m.bmrm").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        parameters = json.loads(arrays["header"].tobytes())["loss_parameters"]
    assert parameters["tree"] == {"parents": [-1, 0, 0, -1], "names": ["a", "a/x", "a/ü", "b"]}
    assert bmrm.load(tmp_path / "m.bmrm").loss == model.loss


def test_losses_without_a_name_cannot_be_saved(tmp_path):
    @dataclass(frozen=True)
    class Own(bmrm.losses.Loss):
        def evaluate(self, scores, targets, weight):
            return 0.0, np.zeros_like(scores)

    with pytest.raises(DataError, match="loss Own is not registered"):
        make(Own()).save(tmp_path / "m.bmrm")
    assert list(tmp_path.iterdir()) == []


def test_losses_of_others_are_found_once_they_are_defined(tmp_path):
    try:

        @dataclass(frozen=True)
        class Own(bmrm.losses.Loss, name="own_of_the_test"):
            def evaluate(self, scores, targets, weight):
                return 0.0, np.zeros_like(scores)

        make(Own()).save(tmp_path / "m.bmrm")
        assert type(bmrm.load(tmp_path / "m.bmrm").loss) is Own
    finally:
        bmrm.losses.LOSSES.pop("own_of_the_test", None)
    with pytest.raises(DataError, match=r"m\.bmrm: unknown loss 'own_of_the_test'.*import the module"):
        bmrm.load(tmp_path / "m.bmrm")


def test_an_old_model_survives_a_failing_save(tmp_path, monkeypatch):
    path = tmp_path / "m.bmrm"
    make().save(path)
    before = path.read_bytes()

    def failing(file, **members):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", failing)
    with pytest.raises(OSError, match="disk full"):
        make(lam=7.0).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.bmrm"]


def test_equal_models_give_equal_files(tmp_path):
    make().save(tmp_path / "a.bmrm")
    make().save(tmp_path / "b.bmrm")
    assert (tmp_path / "a.bmrm").read_bytes() == (tmp_path / "b.bmrm").read_bytes()


def test_the_file_is_a_plain_archive(tmp_path):
    path = tmp_path / "m.bmrm"
    three_classes().save(path)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        assert sorted(arrays) == ["classes", "coef", "header", "intercept"]
        header = json.loads(arrays["header"].tobytes())
    assert header["format"] == "bmrm model"
    assert header["version"] == bmrm.__version__
    assert header["loss"] == "hinge"
    assert len(header["sha256"]) == 64


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match=r"none\.bmrm: cannot be read"):
        bmrm.load(tmp_path / "none.bmrm")
    with pytest.raises(DataError, match="is a directory"):
        bmrm.load(tmp_path)
    with pytest.raises(DataError, match="cannot be written"):
        make().save(tmp_path / "missing" / "m.bmrm")
    with pytest.raises(DataError, match="is a directory"):
        make().save(tmp_path)


def rewritten(path, members=None, header=None, compression=zipfile.ZIP_STORED):
    """Save a model with some members or entries of the header exchanged."""
    make().save(path)
    with path.open("rb") as file, np.load(file) as archive:
        arrays = dict(archive)
    entries = json.loads(arrays["header"].tobytes()) | (header or {})
    arrays["header"] = np.frombuffer(json.dumps(entries).encode(), np.uint8)
    arrays |= members or {}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{name}.npy", array if isinstance(array, bytes) else buffer.getvalue())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"header": {"format": "other"}}, "does not say"),
        ({"header": {"format_version": 2}}, "format version 2"),
        ({"header": {"lam": "x"}}, "'lam' in its header is str"),
        ({"header": {"certificates": {}}}, "expected list"),
        ({"header": {"statuses": ["FINE"]}}, "FINE"),
        ({"header": {"loss": "hing"}}, "Did you mean 'hinge'"),
        ({"header": {"loss_parameters": {"tau": 1}}}, "no parameter 'tau'"),
        ({"header": {"sha256": "0"}}, "checksum"),
        ({"members": {"coef": np.zeros((1, 3))}}, "checksum"),
        ({"members": {"code": np.zeros(1)}}, "expected"),
        ({"members": {"header": np.frombuffer(b"[" * 100000, np.uint8)}}, "not a usable model file"),
        ({"members": {"coef": b"\x93NUMPY\x01\x00\x10\x00{'descr':'|O'}  \n"}}, "not a usable model file"),
        ({"members": {"coef": np.array([["x"]])}}, "not expected"),
        ({"compression": zipfile.ZIP_DEFLATED}, "compressed"),
    ],
)
def test_files_with_wrong_content(tmp_path, changes, message):
    path = tmp_path / "m.bmrm"
    rewritten(path, **changes)
    with pytest.raises(DataError, match=message) as caught:
        bmrm.load(path)
    assert str(path) in str(caught.value)


def test_huge_shapes_are_not_believed(tmp_path):
    path = tmp_path / "m.bmrm"
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1000000000000)}"
    start = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little")
    rewritten(path, members={"coef": start + text})
    with pytest.raises(DataError, match="does not agree with its size"):
        bmrm.load(path)


def test_damaged_files_load_or_raise_one_error(tmp_path):
    path, rng, began = tmp_path / "m.bmrm", random.Random(0), time.monotonic()
    three_classes().save(path)
    original = path.read_bytes()
    messages = []
    for _ in range(1000):
        content = bytearray(original)
        kind = rng.randrange(4)
        if kind == 0:
            del content[rng.randrange(len(content)) :]
        elif kind == 1:
            at = rng.randrange(len(content))
            content[at : at + rng.randrange(1, 40)] = rng.randbytes(rng.randrange(40))
        else:
            for _ in range(rng.randrange(1, 4)):
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        try:
            bmrm.load(path)
        except DataError as error:
            messages.append(str(error))
    assert len(messages) > 700
    assert all(str(path) in message for message in messages)
    assert time.monotonic() - began < 10.0
