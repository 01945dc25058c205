"""Names of columns: from tables and data frames into stores and models, and back into order by name."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from commands import bad, good

import bmrm
from bmrm import DataError

arrow = pytest.importorskip("pyarrow", reason="pyarrow is missing")
pandas = pytest.importorskip("pandas", reason="pandas is missing")

NAMES = ["width", "height", "depth", "age", "price"]
SUFFIXES = [".csv", ".parquet", ".arrow"]


@pytest.fixture
def frame(rng):
    X = rng.normal(size=(300, len(NAMES))) * [1.0, 2.0, 0.5, 1.0, 3.0]
    found = pandas.DataFrame(X, columns=NAMES)
    found["label"] = np.where(X @ [3.0, -1.0, 2.0, 0.3, 0.0] > 0.0, "yes", "no")
    return found


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(frame, name):
    if name.endswith(".csv"):
        frame.to_csv(name, index=False)
    elif name.endswith(".parquet"):
        frame.to_parquet(name, index=False)
    else:
        frame.to_feather(name)


def reverse(frame):
    return frame[frame.columns[::-1]].copy()


def accuracy(*arguments):
    return json.loads(good("evaluate", *arguments, "--json").stdout)["accuracy"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_in_another_order_are_put_in_order(frame, suffix):
    write(frame, f"t{suffix}")
    write(reverse(frame), f"r{suffix}")
    good("train", f"t{suffix}", "--target", "label", "--quiet", "--model", "m.bmrm")
    model = bmrm.load("m.bmrm")
    assert model.feature_names == tuple(NAMES)
    assert accuracy("m.bmrm", f"t{suffix}") == accuracy("m.bmrm", f"r{suffix}") > 0.95
    straight = good("predict", "m.bmrm", f"t{suffix}", "--scores").stdout
    assert good("predict", "m.bmrm", f"r{suffix}", "--scores").stdout == straight
    good("convert", f"r{suffix}", "r.store", "--target", "label", "--quiet")
    assert bmrm.Store("r.store").feature_names == tuple(NAMES[::-1])
    assert accuracy("m.bmrm", "r.store") > 0.95
    scores = np.array(good("predict", "m.bmrm", "r.store", "--scores").stdout.split(), float)
    assert scores == pytest.approx(model.decision_function(frame[NAMES].to_numpy()), abs=1e-9)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_columns_are_named_and_others_ignored(frame, suffix):
    write(frame, f"t{suffix}")
    good("train", f"t{suffix}", "--target", "label", "--quiet", "--model", "m.bmrm")
    less = frame.drop(columns=["depth", "age"])
    write(less, f"less{suffix}")
    for command in ("predict", "evaluate"):
        message = bad(command, "m.bmrm", f"less{suffix}")
        assert f"less{suffix}: has no column 'depth' (and 1 more); expected width, height, depth, age, price" in message
    more = reverse(frame.assign(name="somebody", remark=None))
    write(more, f"more{suffix}")
    result = good("predict", "m.bmrm", f"more{suffix}")
    assert result.stdout == good("predict", "m.bmrm", f"t{suffix}").stdout
    line = f"warning: more{suffix}: ignored 2 columns that are no features: remark, name\n"
    assert result.stderr == line
    assert good("evaluate", "m.bmrm", f"more{suffix}").stderr == line
    assert good("predict", "m.bmrm", f"more{suffix}", "--quiet").stderr == ""
    write(frame[NAMES], f"unlabeled{suffix}")
    assert good("predict", "m.bmrm", f"unlabeled{suffix}").stdout == result.stdout
    assert "has no column 'label'" in bad("evaluate", "m.bmrm", f"unlabeled{suffix}")


def test_stores_and_npz_with_names(frame):
    y = frame.pop("label").to_numpy().astype(str)
    bmrm.write("t.store", frame, y)
    bmrm.write("t.npz", frame, y)
    bmrm.write("more.store", reverse(frame).assign(extra=1.0), y)
    bmrm.write("more.npz", reverse(frame).assign(extra=1.0), y)
    bmrm.write("less.store", frame.drop(columns="age"), y)
    bmrm.write("less.npz", frame.drop(columns="age"), y)
    for train in ("t.store", "t.npz"):
        good("train", train, "--quiet", "--model", "m.bmrm")
        assert bmrm.load("m.bmrm").feature_names == tuple(NAMES)
        for kind in ("store", "npz"):
            result = good("evaluate", "m.bmrm", f"more.{kind}", "--json")
            assert json.loads(result.stdout)["accuracy"] > 0.95
            assert result.stderr == f"warning: more.{kind}: ignored 1 columns that are no features: extra\n"
            message = bad("predict", "m.bmrm", f"less.{kind}")
            assert message.startswith(f"error: less.{kind}: has no column 'age'; expected")


def test_a_loaded_model_orders_frames_by_name(frame):
    y = frame.pop("label").to_numpy().astype(str)
    bmrm.write("t.npz", frame, y)
    good("train", "t.npz", "--quiet", "--model", "m.bmrm")
    model = bmrm.load("m.bmrm")
    expected = model.predict(frame.to_numpy())
    assert np.mean(expected == y) > 0.95
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (reverse(frame), arrow.Table.from_pandas(reverse(frame))):
            assert np.array_equal(model.predict(other), expected)
        numbered = frame.copy()
        numbered.columns = range(len(NAMES))
        assert np.array_equal(model.predict(numbered), expected)
    with pytest.warns(UserWarning, match="ignored 2 columns that are no features: who, select") as said:
        assert np.array_equal(model.predict(frame.assign(who="x", select=1)), expected)
    assert len(said) == 1
    with pytest.raises(DataError, match="X: has no column 'age'; expected width"):
        model.predict(frame.drop(columns="age"))
    twice = frame.copy()
    twice.columns = ["width", "width", *NAMES[2:]]
    with pytest.raises(DataError, match="X: has two columns 'width'"):
        model.predict(twice)


def test_models_without_names_go_by_position(frame):
    y = frame.pop("label").to_numpy().astype(str)
    bmrm.write("t.npz", frame.to_numpy(), y)
    good("train", "t.npz", "--quiet", "--model", "m.bmrm")
    model = bmrm.load("m.bmrm")
    assert model.feature_names is None
    assert np.array_equal(model.predict(frame), model.predict(frame.to_numpy()))
    write(frame.assign(label=y), "t.csv")
    assert accuracy("m.bmrm", "t.csv", "--target", "label") == np.mean(model.predict(frame) == y)
    lines = good("predict", "m.bmrm", "t.csv", "--target", "label").stdout.split()
    assert lines == model.predict(frame).tolist()
    message = bad("evaluate", "m.bmrm", "t.csv")
    assert "t.csv: which column has the labels? Name it by --target" in message
    assert "--target is for tables" in bad("evaluate", "m.bmrm", "t.npz", "--target", "label")


def test_names_are_in_the_file_of_a_model(frame, tmp_path):
    certificate = bmrm.Certificate(upper=0.5, lower=0.5, gap=0.0, source="bmrm")
    known = {
        "coef": [[1.0, 2.0]], "intercept": [0.0], "loss": bmrm.losses.LeastSquares(), "regularizer": "l2", "lam": 0.1,
        "solver": "auto", "tol": 1e-3, "certificates": [certificate], "statuses": [bmrm.Status.CONVERGED],
    }  # fmt: skip
    bmrm.Model(**known, feature_names=["größe", "b\nc"]).save("m.bmrm")
    assert bmrm.load("m.bmrm").feature_names == ("größe", "b\nc")
    with pytest.raises(ValueError, match="feature_names are 1, but coef has 2 columns"):
        bmrm.Model(**known, feature_names=["a"])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_of_one_training_are_put_in_the_order_of_the_first(frame, suffix):
    write(frame[:150], f"a{suffix}")
    write(reverse(frame[150:].reset_index(drop=True)), f"b{suffix}")
    write(frame.assign(more=1.0), f"c{suffix}")
    bmrm.convert([f"a{suffix}", f"b{suffix}"], "ab.store", target="label")
    store = bmrm.Store("ab.store")
    assert store.feature_names == tuple(NAMES)
    whole = bmrm.LinearRisk(frame[NAMES].to_numpy(), np.where(frame["label"] == "yes", 1, -1), "logistic")
    part = bmrm.LinearRisk(store, np.where(store.y == "yes", 1, -1), "logistic")
    w = np.arange(5.0)
    assert part.evaluate(w)[0] == pytest.approx(whole.evaluate(w)[0], rel=1e-12)
    with pytest.raises(DataError, match=rf"c{suffix}: has the column 'more', which others lack"):
        bmrm.convert([f"a{suffix}", f"c{suffix}"], "ab.store", target="label")
    with pytest.raises(DataError, match=rf"a{suffix}: has no column 'more'; expected"):
        bmrm.convert([f"c{suffix}", f"a{suffix}"], "ab.store", target="label")
    bmrm.convert([f"c{suffix}", f"a{suffix}"], "ab.store", target="label", features=["age", "width"])
    assert bmrm.Store("ab.store").feature_names == ("age", "width")
    bmrm.convert(f"c{suffix}", "c.store", target="label")
    with pytest.raises(DataError, match=r"c\.store: has the column 'height' \(and 3 more\), which others lack"):
        bmrm.convert(["ab.store", "c.store"], "d.store")


def test_text_of_every_type_may_be_labels(frame):
    table = arrow.Table.from_pandas(frame)
    for kind in (arrow.string(), arrow.large_string()):
        labels = arrow.array(frame["label"].to_numpy().astype(object), kind)
        typed = table.set_column(len(NAMES), "label", labels)
        import pyarrow.parquet

        pyarrow.parquet.write_table(typed, "t.parquet")
        bmrm.convert("t.parquet", "t.store", target="label")
        assert np.array_equal(bmrm.Store("t.store").y, frame["label"])


def test_files_with_and_without_names_do_not_mix(frame):
    write(frame[NAMES], "a.csv")
    np.save("b.npy", frame[NAMES].to_numpy())
    with pytest.raises(DataError, match=r"b\.npy: has no names of columns, but a\.csv has"):
        bmrm.convert(["a.csv", "b.npy"], "ab.store")


def test_a_name_that_stands_twice(frame):
    with open("t.csv", "w") as file:
        file.write("a,a,y\n1,2,0\n3,4,1\n")
    with pytest.raises(DataError, match=r"t\.csv: has two columns 'a'"):
        bmrm.convert("t.csv", "t.store", target="y")


@pytest.mark.parametrize("n_shards", [2, 4])
def test_shards_of_files_in_different_orders(frame, n_shards):
    write(frame[:150], "a.csv")
    write(reverse(frame[150:].reset_index(drop=True)), "b.csv")
    good("train", "a.csv", "b.csv", "--target", "label", "--engine", "local", "--shards", n_shards, "--quiet",
         "--model", "m.bmrm")  # fmt: skip
    model = bmrm.load("m.bmrm")
    assert model.feature_names == tuple(NAMES)
    assert np.mean(model.predict(frame[NAMES]) == frame["label"]) > 0.95
    bmrm.convert("a.csv", "a.store", target="label")
    bmrm.convert("b.csv", "b.store", target="label")
    for memory in (None, "3GB"):
        shards = bmrm.Shards.from_files(["a.store", "b.store"], memory=memory)
        assert shards.feature_names == tuple(NAMES)
        risk = bmrm.LinearRisk(shards, np.where(shards.y == "yes", 1, -1), "logistic")
        whole = bmrm.LinearRisk(frame[NAMES].to_numpy(), np.where(frame["label"] == "yes", 1, -1), "logistic")
        assert risk.evaluate(np.arange(5.0))[0] == pytest.approx(whole.evaluate(np.arange(5.0))[0], rel=1e-12)
    write(frame[150:].assign(more=1.0), "c.csv")
    with pytest.raises(DataError, match=r"c\.csv: has the column 'more', which a\.csv lacks"):
        bmrm.Shards.from_files(["a.csv", "c.csv"], target="label")
    with pytest.raises(DataError, match="shard 1: has its columns in another order than shard 0"):
        bmrm.Shards.from_arrays([(frame[NAMES], frame["label"]), (frame[NAMES[::-1]], frame["label"])])


def test_estimators_check_the_names_of_stores(frame):
    y = frame.pop("label").to_numpy().astype(str)
    bmrm.write("t.store", frame, y)
    bmrm.write("r.store", reverse(frame), y)
    bmrm.write("plain.store", frame.to_numpy(), y)
    fitted = bmrm.LinearClassifier().fit(bmrm.Store("t.store"))
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.score(frame, y) > 0.95
    for other in (bmrm.Store("r.store"), reverse(frame)):
        with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
            fitted.predict(other)
    assert np.array_equal(fitted.predict(bmrm.Store("plain.store")), fitted.predict(frame))
    assert not hasattr(fitted.fit(bmrm.Store("plain.store")), "feature_names_in_")


def test_dask_frames_keep_their_names(frame):
    dataframe = pytest.importorskip("dask.dataframe", reason="dask is missing")
    data = dataframe.from_pandas(frame, npartitions=3)
    shards = bmrm.Shards.from_dask(data, y="label")
    assert shards.feature_names == tuple(NAMES)
    fitted = bmrm.LinearClassifier().fit(data, "label")
    assert fitted.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        fitted.predict(dataframe.from_pandas(frame[NAMES[::-1]], npartitions=2))


def test_owners_agree_about_names(frame):
    y = np.where(frame.pop("label") == "yes", 1.0, -1.0)
    a, b = (frame[:150], y[:150]), (frame[150:], y[150:])
    with bmrm.owners.Owners([bmrm.Owner(a, "north"), bmrm.Owner(b, "south")]) as owners:
        assert owners.feature_names == tuple(NAMES)
    wrong = [
        (reverse(frame[150:]), "south: its columns are not those of north: they are in another order"),
        (frame[150:].rename(columns={"age": "Age"}), "south: its columns are not those of north: 'age' is missing"),
        (frame[150:].to_numpy(), "south: has no names of columns, but north has"),
    ]
    for X, message in wrong:
        with pytest.raises(bmrm.owners.OwnerError, match=message):
            bmrm.owners.Owners([bmrm.Owner(a, "north"), bmrm.Owner((X, y[150:]), "south")])


def test_queries_and_weights_are_columns_too(frame, rng):
    table = frame[NAMES].assign(grade=np.digitize(frame["width"] + rng.normal(size=300), [-1.0, 0.0, 1.0]))
    table = table.assign(query=np.arange(300) // 10, w=1.0)
    write(table, "q.csv")
    good("train", "q.csv", "--loss", "pairwise_rank", "--target", "grade", "--group", "query", "--weight", "w",
         "--quiet", "--model", "m.bmrm")  # fmt: skip
    assert bmrm.load("m.bmrm").feature_names == tuple(NAMES)
    write(reverse(table), "r.csv")
    found = [json.loads(good("evaluate", "m.bmrm", file, "--json").stdout) for file in ("q.csv", "r.csv")]
    assert found[0] == found[1]
    assert found[0]["queries"] == 30
    result = good("predict", "m.bmrm", "r.csv")
    assert result.stderr == ""
    assert len(result.stdout.split()) == 300


def test_unseen_features_of_text():
    bmrm.write("t.svm", np.array([[1.0, 0.5], [-1.0, 0.0]]), [1, -1])
    bmrm.write("wide.svm", np.array([[1.0, 0.5, 7.0, 1.0], [-1.0, 0.0, 0.0, 3.0]]), [1, -1])
    bmrm.write("narrow.svm", np.array([[1.0], [-1.0]]), [1, -1])
    for name in ("wide", "narrow"):
        good("convert", f"{name}.svm", f"{name}.store", "--quiet")
        data = bmrm.read(f"{name}.svm")
        bmrm.write(f"{name}.npz", data)
    good("train", "t.svm", "--quiet")
    expected = good("predict", "t.bmrm", "t.svm", "--scores").stdout
    for file in ("wide.svm", "wide.store", "wide.npz"):
        for command in ("predict", "evaluate"):
            assert "--ignore-unseen leaves out features that were not there in training" in bad(command, "t.bmrm", file)
        assert good("predict", "t.bmrm", file, "--scores", "--ignore-unseen").stdout == expected
        assert accuracy("t.bmrm", file, "--ignore-unseen") == 1.0
    for file in ("narrow.svm", "narrow.store", "narrow.npz"):
        for more in ([], ["--ignore-unseen"]):
            assert good("predict", "t.bmrm", file, *more).stdout.split() == ["1", "-1"]
    np.savez("dense.npz", X=np.ones((2, 4)), y=[1, -1])
    assert "X has 4 features" in bad("predict", "t.bmrm", "dense.npz", "--ignore-unseen")


def test_errors_name_the_file_and_the_column(frame):
    write(frame[:0], "empty.csv")
    write(frame, "t.csv")
    write(frame[NAMES], "numbers.csv")
    good("train", "t.csv", "--target", "label", "--quiet", "--model", "m.bmrm")
    for command in ("predict", "evaluate"):
        assert bad(command, "m.bmrm", "empty.csv") == "error: empty.csv: no rows; expected at least one"
    assert "needs them (--target, if a column has them)" in bad("train", "numbers.csv")
    model = bmrm.load("m.bmrm")
    with pytest.raises(DataError, match="X: column 'age' has other than numbers"):
        model.predict(reverse(frame[NAMES]).assign(age="old"))
    with pytest.raises(DataError, match="X: column 'label' has other than numbers"):
        bmrm.write("t.npz", frame)
    np.save("t.npy", frame[NAMES].to_numpy())
    with pytest.raises(DataError, match=r"t\.npy: has no names of columns; expected age"):
        bmrm.convert("t.npy", "t.store", features=["age"])


def test_sparse_rows_with_names(frame):
    from scipy.sparse import csr_array

    y = frame.pop("label").to_numpy().astype(str)
    X = csr_array(frame.to_numpy())
    bmrm.write("t.npz", bmrm.Dataset(X, y, feature_names=NAMES))
    good("train", "t.npz", "--quiet", "--model", "m.bmrm")
    order = [4, 3, 2, 1, 0]
    more = csr_array(np.column_stack([frame.to_numpy()[:, order], np.ones(300)]))
    bmrm.write("r.npz", bmrm.Dataset(more, y, feature_names=[*np.array(NAMES)[order], "one"]))
    bmrm.convert("t.npz", "t.store")
    bmrm.convert("r.npz", "r.store")
    both = [bmrm.Dataset(X, y, feature_names=NAMES), bmrm.Dataset(more[:, :5], y, feature_names=NAMES[::-1])]
    for name, data in zip("ab", both):
        bmrm.write(f"{name}.npz", data)
    bmrm.convert(["a.npz", "b.npz"], "ab.store")
    risk = bmrm.LinearRisk(bmrm.Store("ab.store"), np.where(np.tile(y, 2) == "yes", 1, -1), "hinge")
    alone = bmrm.LinearRisk(X, np.where(y == "yes", 1, -1), "hinge")
    assert risk.evaluate(np.arange(5.0))[0] == pytest.approx(alone.evaluate(np.arange(5.0))[0], rel=1e-12)
    expected = accuracy("m.bmrm", "t.store")
    for file in ("r.npz", "r.store"):
        result = good("evaluate", "m.bmrm", file, "--json")
        assert json.loads(result.stdout)["accuracy"] == expected > 0.95
        assert result.stderr == f"warning: {file}: ignored 1 columns that are no features: one\n"
    names = ["width", "height", "depth", "age", "cost", "one"]
    bmrm.write("less.npz", bmrm.Dataset(more, y, feature_names=names))
    bmrm.convert("less.npz", "less.store")
    for file in ("less.npz", "less.store"):
        message = f"error: {file}: has no column 'price'; expected width, height, depth, age, price"
        assert bad("evaluate", "m.bmrm", file) == message
