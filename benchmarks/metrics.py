"""Does training for the metric help? ``python benchmarks/metrics.py [--only scores]`` writes docs/benchmarks.

Every model has the same choice of lam, made on a fifth of the training rows by the metric that is reported; then it is
fitted on all of them and measured on the test rows. Data are read from the folder that BMRM_DATA names, or
../shared/data; sets that are not there are left out and named.
"""

import argparse
import json
import lzma
import os
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn import metrics
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

import bmrm

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BMRM_DATA", ROOT.parent / "shared" / "data"))
LAMS = (1e-2, 1e-3, 1e-4, 1e-5)
TOL, SECONDS = 1e-3, 20.0


def best_of(make, fit, measure, train, valid, lams=LAMS):
    """The estimator with the lam that measures best on the validation rows."""
    found = [(measure(fit(make(lam), *train), *valid), -i, lam) for i, lam in enumerate(lams)]
    return make(max(found)[2]), max(found)[2]


def plain_fit(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


def compare(title, names, sets, measures):
    """Lines of a table: a row for each data set, a column for each model; with the seconds of the last fit."""
    lines = [f"## {title}", "", "| data | metric | " + " | ".join(names) + " |", "|---|---|" + "---:|" * len(names)]
    for name, load in sets.items():
        try:
            X, y, X2, y2 = load()
        except (FileNotFoundError, bmrm.DataError) as missing:
            print(f"({name} is not present: left out; {missing})", flush=True)
            continue
        inner = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0, stratify=strata(y))
        for metric, (measure, models) in measures(y).items():
            cells = []
            for model in names:
                if model not in models:
                    cells.append("")
                    continue
                train, valid = ((X[rows], y[rows]) for rows in inner)
                chosen, lam = best_of(models[model], plain_fit, measure, train, valid)
                began = time.perf_counter()
                fitted = plain_fit(chosen, X, y)
                seconds = time.perf_counter() - began
                cells.append(f"{measure(fitted, X2, y2):.4f} ({lam:g}, {seconds:.1f} s)")
                print(name, metric, model, cells[-1], flush=True)
            lines.append(f"| {name} | {metric} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def strata(y):
    counts = np.unique(y, return_counts=True)[1]
    return y if counts.min() > 1 else None


def linear(loss, **more):
    return lambda lam: bmrm.LinearClassifier(loss=loss, lam=lam, tol=TOL, max_seconds=SECONDS, **more)


def scored(score, **parameters):
    return lambda lam: bmrm.ScoreClassifier(
        score=score, score_params=parameters or None, lam=lam, tol=TOL, max_seconds=SECONDS
    )


def svmlight(train, test):
    def load():
        one = bmrm.read(DATA / train)
        other = bmrm.read(DATA / test, n_features=one.X.shape[1])
        return sp.csr_matrix(one.X), one.y, sp.csr_matrix(other.X), other.y

    return load


def imbalanced():
    """One row in 200 is positive; the classes overlap."""
    rng = np.random.default_rng(0)
    m = 40000
    y = np.where(rng.random(m) < 1 / 200, 1.0, -1.0)
    X = rng.normal(size=(m, 30)) + 0.6 * np.outer(y > 0, rng.normal(size=30))
    return X[: m // 2], y[: m // 2], X[m // 2 :], y[m // 2 :]


def f1(model, X, y):
    return metrics.f1_score(y == y.max(), model.predict(X) == y.max(), zero_division=0.0)


def auc(model, X, y):
    return metrics.roc_auc_score(y == y.max(), model.decision_function(X))


def precision_at(k):
    def measure(model, X, y):
        top = np.argsort(-model.decision_function(X), kind="stable")[: max(1, round(k * len(y)))]
        return float(np.mean(y[top] == y.max()))

    return measure


def scores():
    sets = {
        "a9a": svmlight("a9a/a9a.xz", "a9a/a9a.t.xz"),
        "ijcnn1": svmlight("ijcnn1/ijcnn1.xz", "ijcnn1/ijcnn1.t.xz"),
        "reuters_lasvm": svmlight("reuters_lasvm/reuters.xz", "reuters_lasvm/reuters.t.xz"),
        "generated 1:200": imbalanced,
    }
    plain = {"hinge": linear("hinge"), "logistic": linear("logistic")}

    def measures(y):
        share = 0.5 * float(np.mean(y == y.max()))
        at_top = scored("precision_at_k", k=share)
        return {
            "ROC area": (auc, plain | {"for the metric": scored("roc_area")}),
            "F1": (f1, plain | {"for the metric": scored("f1")}),
            f"precision@{share:.1%}": (precision_at(share), plain | {"for the metric": at_top}),
        }

    return compare("Scores of a whole set", ["hinge", "logistic", "for the metric"], sets, measures)


def mnist():
    def images(name):
        with lzma.open(DATA / "mnist" / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784) / 255.0

    def labels(name):
        with lzma.open(DATA / "mnist" / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64)

    X, X2 = images("train-images.idx3-ubyte.xz"), images("t10k-images.idx3-ubyte.xz")
    return X[:20000], labels("train-labels.idx1-ubyte.xz")[:20000], X2, labels("t10k-labels.idx1-ubyte.xz")


def news20():
    data = bmrm.read(DATA / "news20" / "news20.xz")
    X = sp.csr_matrix(data.X)
    X = sp.diags(1.0 / np.maximum(1e-12, np.sqrt(X.multiply(X).sum(axis=1).A1))) @ X
    train, test = train_test_split(np.arange(len(data.y)), test_size=0.2, random_state=0, stratify=data.y)
    return X[train], data.y[train], X[test], data.y[test]


def multiclass():
    sets = {
        "letter": svmlight("letter/letter.scale.xz", "letter/letter.scale.t.xz"),
        "usps": svmlight("usps/usps.xz", "usps/usps.t.xz"),
        "mnist (20000 rows)": mnist,
        "news20": news20,
    }
    names = ["hinge, one against the rest", "multiclass_hinge", "logistic, one against the rest", "softmax"]

    def measures(y):
        models = [linear("hinge"), linear("multiclass_hinge"), linear("logistic"), linear("softmax")]
        return {"accuracy": (lambda model, X, y: model.score(X, y), dict(zip(names, models)))}

    return compare("More than two classes", names, sets, measures)


def ordinal():
    def load(name):
        def split():
            data = bmrm.read(DATA / "ordinal" / f"{name}.xz")
            X = np.asarray(sp.csr_matrix(data.X).todense())
            X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
            train, test = train_test_split(
                np.arange(len(data.y)), test_size=0.3, random_state=0, stratify=strata(data.y)
            )
            return X[train], data.y[train], X[test], data.y[test]

        return split

    names = ("era", "esl", "lev", "balance_scale", "winequality-white", "car", "nursery")
    sets = {name: load(name) for name in names}

    def mean_error(model, X, y):
        return -float(np.mean(np.abs(np.round(model.predict(X)) - y)))

    def regression(loss):
        return lambda lam: bmrm.LinearRegressor(loss=loss, lam=lam, tol=TOL, max_seconds=SECONDS)

    def measures(y):
        models = {
            "least_squares": regression("least_squares"),
            "least_absolute": regression("least_absolute"),
            "hinge, one against the rest": linear("hinge"),
            "ordinal": lambda lam: bmrm.OrdinalRegressor(lam=lam, tol=TOL, max_seconds=SECONDS),
        }
        return {"minus the mean error": (mean_error, models)}

    columns = ["least_squares", "least_absolute", "hinge, one against the rest", "ordinal"]
    return compare("Grades", columns, sets, measures)


def newsgroups():
    """A tree of two levels: the first part of a group's name, and the group."""
    names = {int(k): v["name"] for k, v in json.loads((DATA / "20news" / "classes.json").read_text()).items()}
    paths = {k: f"{name.split('.')[0]}/{name}" for k, name in names.items()}
    X, y, X2, y2 = svmlight("20news/20news_bydate.counts.xz", "20news/20news_bydate.counts.t.xz")()

    def scaled(X):
        X = X.copy()
        X.data = np.log1p(X.data)
        return sp.csr_matrix(sp.diags(1.0 / np.maximum(1e-12, np.sqrt(X.multiply(X).sum(axis=1).A1))) @ X)

    return scaled(X), np.array([paths[int(c)] for c in y]), scaled(X2), np.array([paths[int(c)] for c in y2])


def imclef():
    def read(name):
        rows, labels = [], []
        with lzma.open(DATA / "hier_imclef07a" / name, "rt") as file:
            for line in file:
                label, *entries = line.split()
                labels.append(max(label.split("@"), key=len))
                x = np.zeros(80)
                for entry in entries:
                    j, value = entry.split(":")
                    x[int(j) - 1] = float(value)
                rows.append(x)
        return np.array(rows) / 10.0, np.array(labels)

    return (*read("imclef07a.xz"), *read("imclef07a.t.xz"))


def tree_distance(model, X, y):
    """Minus the mean number of edges between the predicted class and the true one."""
    distance = [len(set(steps(a)) ^ set(steps(b))) for a, b in zip(model.predict(X), y)]
    return -float(np.mean(distance))


def steps(path):
    parts = str(path).split("/")
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def hierarchies():
    sets = {"20news": newsgroups, "imclef07a": imclef}

    def in_tree(loss):
        return lambda lam: bmrm.HierarchicalClassifier(loss=loss, lam=lam, tol=1e-2, max_seconds=60.0)

    def flat(loss):
        return lambda lam: bmrm.LinearClassifier(loss=loss, lam=lam, tol=1e-2, max_seconds=60.0)

    def measures(y):
        models = {
            "multiclass_hinge, flat": flat("multiclass_hinge"),
            "hierarchical_hinge": in_tree("hierarchical_hinge"),
        }
        models |= {"softmax, flat": flat("softmax"), "hierarchical_softmax": in_tree("hierarchical_softmax")}
        return {
            "accuracy": (lambda model, X, y: float(np.mean(model.predict(X) == y)), models),
            "minus the tree distance": (tree_distance, models),
        }

    names = ["multiclass_hinge, flat", "hierarchical_hinge", "softmax, flat", "hierarchical_softmax"]
    return compare("Hierarchies", names, sets, measures)


def ndcg(scores, grades, qid, k=10):
    """The mean NDCG@k with gains 2^grade - 1, over the queries with a relevant document."""
    found = []
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        gains = 2.0 ** grades[rows] - 1.0
        discount = 1.0 / np.log2(2.0 + np.arange(len(rows)))
        discount[k:] = 0.0
        ideal = np.sort(gains)[::-1] @ discount
        if ideal > 0.0:
            found.append(gains[np.argsort(-scores[rows], kind="stable")] @ discount / ideal)
    return float(np.mean(found))


def ranking():
    lines = ["## Ranking: MQ2008, NDCG@10", "", "Gains 2^grade - 1; queries with a relevant document.", ""]
    if not (DATA / "MQ2008").exists():
        print("(MQ2008 is not present: left out)", flush=True)
        return []
    folds = [bmrm.read(DATA / "MQ2008" / f"fold{k}_test.xz", n_features=46) for k in range(1, 6)]
    X = [np.asarray(sp.csr_matrix(fold.X).todense()) for fold in folds]
    names = ["ridge", "pairwise_rank", "ndcg"]
    table = []
    for k in range(5):
        valid, train = (k - 1) % 5, [j for j in range(5) if j not in (k, (k - 1) % 5)]
        table.append([one_fold(name, X, folds, train, valid, k) for name in names])
        print("fold", k + 1, table[-1], flush=True)
    table.append([one_fold(name, X, folds, [0, 1, 2], 3, 4, refit=True) for name in names])
    lines += ["| test | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    titles = [*(f"fold {k + 1}" for k in range(5)), "fold 5, trained on 1 to 4"]
    lines += [f"| {title} | " + " | ".join(f"{v:.4f}" for v in row) + " |" for title, row in zip(titles, table)]
    mean = np.mean(table[:5], axis=0)
    return [*lines, "| mean of the folds | " + " | ".join(f"{v:.4f}" for v in mean) + " |", ""]


def one_fold(name, X, folds, train, valid, test, refit=False):
    def gathered(which):
        return np.concatenate([X[j] for j in which]), np.concatenate([folds[j].y for j in which])

    def groups(which):
        return np.concatenate([folds[j].groups for j in which])

    def fit(lam, which):
        if name == "ridge":
            model = Ridge(alpha=lam * sum(len(folds[j].y) for j in which))
            return model.fit(*gathered(which))
        model = bmrm.Ranker(loss=name, lam=lam, tol=TOL, max_seconds=SECONDS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(*gathered(which), qid=groups(which))

    def measured(model, which):
        features, grades = gathered(which)
        return ndcg(model.predict(features), grades, groups(which))

    lam = max(LAMS, key=lambda lam: measured(fit(lam, train), [valid]))
    return measured(fit(lam, [*train, valid] if refit else train), [test])


PARTS = {"scores": scores, "multiclass": multiclass, "ranking": ranking, "ordinal": ordinal, "hierarchies": hierarchies}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks" / "metrics.md")
    options = parser.parse_args()
    head = __doc__.split("\n\n")[1].replace("\n", " ")
    lines = [
        "# Training for the metric",
        "",
        head,
        "",
        "In brackets: the lam chosen, and the seconds of the last fit.",
        "",
    ]
    for part in options.only:
        lines += PARTS[part]()
    options.output.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
