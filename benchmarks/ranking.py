"""NDCG@10 by losses of pairs: ``python benchmarks/ranking.py`` prints the tables of docs/benchmarks/ranking.md.

MQ2008: fold k is the test set, fold k - 1 the validation set, the other three are trained on. ltr_lightgbm: its queries
in five folds, used in the same way, for each of three shuffles; and its own split, with lam from five folds of the
training queries. Every loss meets the same grid of lam. Data are read from the folder that BMRM_DATA names.
"""

import warnings

import metrics_data as data
import numpy as np
from metrics_ranking import ndcg_by_query

import bmrm

LOSSES = ("pairwise_rank", "ndcg_pairs")
LAMS = tuple(10.0 ** (-e / 2.0) for e in range(11))  # 1 to 1e-5
SHUFFLES = 3


def ltr(name):
    read = bmrm.read(data.DATA / "ltr_lightgbm" / name, n_features=300)
    return read.X.toarray(), read.y, read.groups


def joined(parts):
    return tuple(np.concatenate(column) for column in zip(*parts))


def fitted(loss, lam, rows):
    X, y, qid = rows
    return bmrm.Ranker(loss=loss, lam=lam, tol=1e-4, max_seconds=20.0).fit(X, y, qid=qid)


def measured(model, rows):
    X, y, qid = rows
    return ndcg_by_query(model.predict(X), y, qid)


def by_folds(loss, folds):
    """NDCG of the queries of each fold with the lam that is best on the fold before it, and those lam."""
    values, chosen = [], []
    for k, test in enumerate(folds):
        train = joined(fold for j, fold in enumerate(folds) if j not in (k, (k - 1) % 5))
        models = {lam: fitted(loss, lam, train) for lam in LAMS}
        best = max(LAMS, key=lambda lam: measured(models[lam], folds[k - 1]).mean())
        values.append(measured(models[best], test))
        chosen.append(best)
    return values, chosen


def cut(rows, seed):
    """Five folds of whole queries."""
    names, query = np.unique(rows[2], return_inverse=True)
    fold = np.random.default_rng(seed).permutation(len(names))[query] % 5
    return [tuple(column[fold == k] for column in rows) for k in range(5)]


def by_split(loss, train, test):
    """NDCG of the test queries with the lam that is best over five folds of the training queries, and that lam."""
    folds = cut(train, 0)

    def crossed(lam):
        models = (fitted(loss, lam, joined(folds[:k] + folds[k + 1 :])) for k in range(5))
        return np.concatenate([measured(model, fold) for model, fold in zip(models, folds)]).mean()

    best = max(LAMS, key=crossed)
    return measured(fitted(loss, best, train), test), best


def gain(values, base):
    """The mean difference by query, and its standard error; nothing for the base itself."""
    difference = np.asarray(values) - np.asarray(base)
    if not difference.any():
        return ""
    return f"{difference.mean():+.4f} ± {difference.std(ddof=1) / np.sqrt(difference.size):.4f}"


def table(rows, cells):
    print("| | " + " | ".join(f"`{loss}`" for loss in LOSSES) + " |\n|---|" + "---:|" * len(LOSSES))
    for name in rows:
        print(f"| {name} | " + " | ".join(cells[loss][name] for loss in LOSSES) + " |", flush=True)


def mq2008():
    folds = data.mq2008()
    found = {loss: by_folds(loss, folds) for loss in LOSSES}
    base = np.concatenate(found[LOSSES[0]][0])
    cells = {}
    for loss, (values, lams) in found.items():
        cells[loss] = {f"fold {k + 1}": f"{values[k].mean():.4f} ({lams[k]:.0e})" for k in range(5)}
        cells[loss]["mean of the folds"] = f"{np.mean([fold.mean() for fold in values]):.4f}"
        cells[loss]["gain by query"] = gain(np.concatenate(values), base)
    table(next(iter(cells.values())), cells)


def ltr_lightgbm():
    train, test = ltr("rank.xz"), ltr("rank.t.xz")
    rows = joined([train, (test[0], test[1], test[2] + train[2].max() + 1)])
    cells, crossed, split = {}, {}, {}
    for loss in LOSSES:
        shuffled = [by_folds(loss, cut(rows, seed))[0] for seed in range(SHUFFLES)]
        means = [np.mean([fold.mean() for fold in values]) for values in shuffled]
        cells[loss] = {f"five folds, shuffle {seed + 1}": f"{mean:.4f}" for seed, mean in enumerate(means)}
        cells[loss]["mean of the shuffles"] = f"{np.mean(means):.4f}"
        crossed[loss] = np.mean([by_name(values, cut(rows, seed)) for seed, values in enumerate(shuffled)], axis=0)
        cells[loss]["gain by query"] = gain(crossed[loss], crossed[LOSSES[0]])
        split[loss], lam = by_split(loss, train, test)
        cells[loss]["its own split, 50 queries"] = f"{split[loss].mean():.4f} ({lam:.0e})"
        cells[loss]["gain by query there"] = gain(split[loss], split[LOSSES[0]])
    table(next(iter(cells.values())), cells)


def by_name(values, folds):
    """The values of all folds in the order of the queries' names; queries without a relevant document have none."""
    names = [q for X, y, qid in folds for q in np.unique(qid) if y[qid == q].max() > 0.0]
    return np.concatenate(values)[np.argsort(names)]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # queries of equal grades are left out
    for part in (mq2008, ltr_lightgbm):
        print(f"\n{part.__name__}\n", flush=True)
        part()
