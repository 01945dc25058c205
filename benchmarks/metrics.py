"""Does training for the metric help? ``python benchmarks/metrics.py [--only scores]`` writes the page about it.

Parts are kept beside the page's build (build/metrics/NAME.md) and joined; ``--only`` makes some of them anew. Data are
read from the folder that BMRM_DATA names, or ../shared/data; sets that are not there are left out and named.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import metrics_data as data
import numpy as np
from metrics_ranking import ranking, table_head
from sklearn import metrics
from sklearn.model_selection import StratifiedKFold, train_test_split

import bmrm
from bmrm.losses import FBeta
from bmrm.outcomes import score_threshold

FOLDS = 3
RESAMPLES = 100


class Model(NamedTuple):
    """An estimator for each lam, and what is measured of it."""

    make: Callable[[float], Any]
    lams: tuple[float, ...]
    output: Callable[[Any, Any], Any] = lambda model, X: model.predict(X)


class Metric(NamedTuple):
    """A number, the larger the better, of targets and outputs; the models it is measured for, the first ones plain."""

    measure: Callable[[Any, Any], float]
    models: tuple[str, ...]
    plain: int


def fitted(model, lam, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.make(lam).fit(X, y)


def outputs_by_lam(model, X, y, most):
    """For each lam the targets and outputs of the folds of a cross-validation, on at most so many rows."""
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes of fewer rows than folds
        folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(rows, y[rows]))
    return {
        lam: [
            (y[rows[valid]], model.output(fitted(model, lam, X[rows[train]], y[rows[train]]), X[rows[valid]]))
            for train, valid in folds
        ]
        for lam in model.lams
    }


def resampled(measures, y, outputs):
    """The standard error of a measure, or of the difference of two, over resamples of the test rows."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(RESAMPLES):
        rows = rng.integers(len(y), size=len(y))
        found.append(measures(y[rows], [output[rows] for output in outputs]))
    return np.std(found, axis=0, ddof=1)


def compare(sets, columns, models_of, measures, most):
    """Lines of a table: a row for each data set and metric, a column for each model, and the gain over the plain.

    `columns` says which models each column has.
    """
    lines = table_head("data", "metric", *columns, "gain")
    for name, load in sets.items():
        try:
            X, y, X2, y2 = load()
        except (FileNotFoundError, bmrm.DataError) as missing:
            print(f"({name} is not present: left out; {missing})", flush=True)
            continue
        validated, tested = {}, {}
        models = models_of(y)
        for model in models:
            began = time.perf_counter()
            validated[model] = outputs_by_lam(models[model], X, y, most(y))
            print(f"{name}: {model} validated in {time.perf_counter() - began:.1f} s", flush=True)
        for title, metric in measures(y).items():
            cells, outputs = {}, {}
            for model in metric.models:
                lam = best_lam(validated[model], metric.measure)
                if (model, lam) not in tested:
                    tested[model, lam] = models[model].output(fitted(models[model], lam, X, y), X2)
                outputs[model] = tested[model, lam]
                cells[model] = (metric.measure(y2, outputs[model]), lam)
            lines.append(row_of(name, title, metric, columns.values(), cells, outputs, y2))
            print(lines[-1], flush=True)
    return lines


def best_lam(validated, measure):
    """The lam with the largest mean of the measure over the folds."""
    return max(validated, key=lambda lam: np.mean([measure(*one) for one in validated[lam]]))


def row_of(name, title, metric, columns, cells, outputs, y2):
    """One line: values with their lam, and what the best trained for it gains over the best plain one."""
    plain = max(metric.models[: metric.plain], key=lambda model: cells[model][0])
    own = max(metric.models[metric.plain :], key=lambda model: cells[model][0])
    pair = [outputs[own], outputs[plain]]
    error = resampled(lambda y, both: metric.measure(y, both[0]) - metric.measure(y, both[1]), y2, pair)
    text = []
    for models in columns:
        shown = [model for model in models if model in cells]
        several = len([model for model in metric.models[metric.plain :] if model in models]) > 1
        labels = [f"{model} " if several else "" for model in shown]
        text.append(", ".join(f"{label}{cells[m][0]:.4f} ({cells[m][1]:g})" for label, m in zip(labels, shown)))
    gain = f"{cells[own][0] - cells[plain][0]:+.4f} ± {error:.4f}"
    return f"| {name} | {title} | " + " | ".join(text) + f" | {gain} |"


def linear(loss, lams, tol=1e-3, seconds=60.0, output=None, **more):
    def make(lam):
        return bmrm.LinearClassifier(loss=loss, lam=lam, tol=tol, max_seconds=seconds, **more)

    return Model(make, lams, output or (lambda model, X: model.predict(X)))


def decision(model, X):
    return model.decision_function(X)


class ThresholdForF1(bmrm.LinearClassifier):
    """A linear classifier whose constant is moved to where F1 is largest on the rows of the fit."""

    def fit(self, X, y):
        super().fit(X, y)
        self.intercept_ = self.intercept_ - score_threshold(FBeta(), self.decision_function(X), y == self.classes_[1])
        return self


def scored(score, lams, **parameters):
    def make(lam):
        return bmrm.ScoreClassifier(score=score, score_params=parameters or None, lam=lam, tol=1e-3, max_seconds=60.0)

    return Model(make, lams, decision)


def share_of(y):
    return float(np.mean(y > 0))


def scores():
    sets = {
        "a9a": data.svmlight("a9a/a9a.xz", "a9a/a9a.t.xz"),
        "ijcnn1": data.svmlight("ijcnn1/ijcnn1.xz", "ijcnn1/ijcnn1.t.xz"),
        "reuters_lasvm": data.svmlight("reuters_lasvm/reuters.xz", "reuters_lasvm/reuters.t.xz"),
        "generated 1:200": data.imbalanced,
    }
    lams = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)

    def threshold(loss):
        return Model(lambda lam: ThresholdForF1(loss=loss, lam=lam, tol=1e-3, max_seconds=60.0), lams, decision)

    def models(y):
        return {
            "hinge": linear("hinge", lams, output=decision),
            "logistic": linear("logistic", lams, output=decision),
            "hinge, threshold": threshold("hinge"),
            "logistic, threshold": threshold("logistic"),
            "roc_area": scored("roc_area", (1e-1, *lams[:4])),
            "fbeta": scored("f1", lams),
            "precision_at_k": scored("precision_at_k", (10.0, 1.0, 1e-1, 1e-2, 1e-3), k=0.05),
            "break_even": scored("break_even", lams),
        }

    def measures(y):
        def auc(y, f):
            return metrics.roc_auc_score(y > 0, f)

        def f1(y, f):
            return metrics.f1_score(y > 0, f > 0, zero_division=0.0)

        def first(share):
            def precision(y, f):
                k = max(1, round(share(y) * len(y)))
                return float(np.mean(y[np.argsort(-f, kind="stable")[:k]] > 0))

            return precision

        plain = ("hinge", "logistic")
        return {
            "ROC area": Metric(auc, (*plain, "roc_area"), 2),
            "F1": Metric(f1, (*plain, "fbeta"), 2),
            "F1, threshold chosen": Metric(f1, ("hinge, threshold", "logistic, threshold", "fbeta"), 2),
            "precision@5%": Metric(first(lambda y: 0.05), (*plain, "precision_at_k", "break_even"), 2),
            "precision = recall": Metric(first(share_of), (*plain, "break_even"), 2),
        }

    columns = {
        "hinge": ("hinge", "hinge, threshold"),
        "logistic": ("logistic", "logistic, threshold"),
        "for the metric": ("roc_area", "fbeta", "precision_at_k", "break_even"),
    }
    return compare(sets, columns, models, measures, most=lambda y: 6000)


def multiclass():
    sets = {
        "letter": data.dense(data.svmlight("letter/letter.scale.xz", "letter/letter.scale.t.xz")),
        "usps": data.dense(data.svmlight("usps/usps.xz", "usps/usps.t.xz")),
        "mnist (5000 rows)": data.dense(data.mnist),
        "news20": data.news20,
    }
    lams = (1e-3, 1e-4, 1e-5, 1e-6)
    settings = {"tol": 1e-2, "penalize_intercept": True}
    models = {
        "hinge, one against the rest": linear("hinge", lams, **settings),
        "logistic, one against the rest": linear("logistic", lams, **settings),
        "multiclass_hinge": linear("multiclass_hinge", lams, **settings),
        "softmax": linear("softmax", lams, **settings),
    }
    measure = Metric(lambda y, predicted: float(np.mean(y == predicted)), tuple(models), 2)
    columns = {name: (name,) for name in models}
    return compare(sets, columns, lambda y: models, lambda y: {"accuracy": measure}, most=lambda y: 1500)


def ordinal():
    """The mean over random halves of the absolute error of the grade."""
    lams, splits = (1e-1, 1e-2, 1e-3, 1e-4), 5

    def regression(loss):
        return Model(
            lambda lam: bmrm.LinearRegressor(loss=loss, lam=lam, tol=1e-3, max_seconds=60.0),
            lams,
            lambda model, X: np.round(model.predict(X)),
        )

    models = {
        "least_squares": regression("least_squares"),
        "least_absolute": regression("least_absolute"),
        "hinge, one against the rest": linear("hinge", lams),
        "ordinal": Model(lambda lam: bmrm.OrdinalRegressor(lam=lam, tol=1e-3, max_seconds=60.0), lams),
    }
    lines = table_head("data", "grades", *models, "gain")
    for name in data.ORDINAL:
        try:
            X, y = data.grades(name)
        except (FileNotFoundError, bmrm.DataError) as missing:
            print(f"({name} is not present: left out; {missing})", flush=True)
            continue
        found = np.array([errors_of(models, X, y, split) for split in range(splits)])
        text = [f"{mean:.3f}" for mean in found.mean(axis=0)]
        best = int(np.argmin(found.mean(axis=0)[:-1]))
        gain = found[:, best] - found[:, -1]
        error = gain.std(ddof=1) / np.sqrt(splits)
        lines.append(f"| {name} | {len(np.unique(y))} | " + " | ".join(text) + f" | {gain.mean():+.3f} ± {error:.3f} |")
        print(lines[-1], flush=True)
    return lines


def errors_of(models, X, y, split):
    """The mean absolute error of each model on one half of the rows, trained on the other."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, random_state=split)
    errors = []
    for model in models.values():
        validated = outputs_by_lam(model, X[train], y[train], most=1000)
        lam = best_lam(validated, lambda target, output: -np.abs(target - output).mean())
        chosen = fitted(model, lam, X[train], y[train])
        errors.append(np.abs(model.output(chosen, X[test]) - y[test]).mean())
    return errors


def steps(path):
    parts = str(path).split("/")
    return {"/".join(parts[: i + 1]) for i in range(len(parts))}


def hierarchies():
    sets = {"20news": data.newsgroups, "imclef07a": data.imclef}
    lams = (1e-3, 1e-4, 1e-5)
    settings = {"tol": 1e-2, "max_seconds": 30.0, "penalize_intercept": True}

    def model(kind, loss):
        return Model(lambda lam: kind(loss=loss, lam=lam, **settings), lams)

    models = {
        "multiclass_hinge, flat": model(bmrm.LinearClassifier, "multiclass_hinge"),
        "softmax, flat": model(bmrm.LinearClassifier, "softmax"),
        "hierarchical_hinge": model(bmrm.HierarchicalClassifier, "hierarchical_hinge"),
        "hierarchical_softmax": model(bmrm.HierarchicalClassifier, "hierarchical_softmax"),
    }

    def nearness(y, predicted):
        return -float(np.mean([len(steps(a) ^ steps(b)) for a, b in zip(y, predicted)]))

    def measures(y):
        accuracy = Metric(lambda y, predicted: float(np.mean(y == predicted)), tuple(models), 2)
        return {"accuracy": accuracy, "minus the tree distance": Metric(nearness, tuple(models), 2)}

    return compare(sets, {name: (name,) for name in models}, lambda y: models, measures, most=lambda y: 2000)


PARTS = {"scores": scores, "multiclass": multiclass, "ranking": ranking, "ordinal": ordinal, "hierarchies": hierarchies}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--output", type=Path, default=data.ROOT / "docs" / "benchmarks" / "metrics.md")
    options = parser.parse_args()
    parts = data.ROOT / "build" / "metrics"
    parts.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        (parts / f"{name}.md").write_text("\n".join(PARTS[name]()))
    words = (Path(__file__).parent / "metrics_words.md").read_text()
    for name in PARTS:
        path = parts / f"{name}.md"
        words = words.replace(f"{{{name}}}", path.read_text().strip() if path.exists() else "Not measured to the end.")
    options.output.write_text(words)


if __name__ == "__main__":
    main()
