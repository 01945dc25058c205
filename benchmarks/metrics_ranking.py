"""The ranking part of ``metrics.py``: MQ2008, each fold in turn, lam chosen among the other four."""

import warnings

import metrics_data as data
import numpy as np
from sklearn.linear_model import Ridge

import bmrm


def table_head(*names):
    return ["| " + " | ".join(names) + " |", "|---|---|" + "---:|" * (len(names) - 2)]


def ndcg_by_query(scores, grades, qid, k=10):
    """NDCG@k with gains 2^grade - 1 of the queries that have a relevant document."""
    found = []
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        gains = 2.0 ** grades[rows] - 1.0
        discount = 1.0 / np.log2(2.0 + np.arange(len(rows)))
        discount[k:] = 0.0
        ideal = np.sort(gains)[::-1] @ discount
        if ideal > 0.0:
            found.append(gains[np.argsort(-scores[rows], kind="stable")] @ discount / ideal)
    return np.array(found)


def ranking():
    try:
        folds = data.mq2008()
    except (FileNotFoundError, bmrm.DataError) as missing:
        print(f"(MQ2008 is not present: left out; {missing})", flush=True)
        return []

    def ranker(loss, **parameters):
        def fit(lam, X, y, qid):
            model = bmrm.Ranker(loss=loss, loss_params=parameters or None, lam=lam, tol=3e-3, max_seconds=60.0)
            return model.fit(X, y, qid=qid)

        return fit

    def ridge(lam, X, y, qid):
        return Ridge(alpha=lam * len(y)).fit(X, y)

    models = {
        "ridge": (ridge, (3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5)),
        "pairwise_rank": (ranker("pairwise_rank"), (1e-2, 3e-3, 1e-3, 1e-4, 1e-5)),
        "ndcg": (ranker("ndcg", k=10), (3e-2, 1e-2, 3e-3)),
        'ndcg, ties="rows"': (ranker("ndcg", k=10, ties="rows"), (1e-2,)),
    }
    found = {name: rotated(name, fit, folds, lams) for name, (fit, lams) in models.items()}
    lines = table_head("test", *models)
    for k in range(5):
        cells = [f"{values[k].mean():.4f} ({lam[k]:g})" for values, lam in found.values()]
        lines.append(f"| fold {k + 1} | " + " | ".join(cells) + " |")
    pooled = {name: np.concatenate(values) for name, (values, _) in found.items()}
    means = [f"{np.mean([fold.mean() for fold in values]):.4f}" for values, _ in found.values()]
    lines.append("| mean of the folds | " + " | ".join(means) + " |")
    gains = [values - pooled["ridge"] for values in pooled.values()]
    errors = [f"{g.mean():+.4f} ± {g.std(ddof=1) / np.sqrt(g.size):.4f}" for g in gains[1:]]
    return [*lines, "| all queries, gain over ridge | | " + " | ".join(errors) + " |"]


def rotated(name, fit, folds, lams):
    """NDCG of the queries of each fold, trained on the other four, and the lam chosen among those four."""
    known = {}

    def measured(lam, left_out, test):
        train = tuple(j for j in range(5) if j not in left_out)
        if (lam, train) not in known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                known[lam, train] = fit(lam, *(np.concatenate(parts) for parts in zip(*(folds[j] for j in train))))
        X, y, qid = folds[test]
        return ndcg_by_query(known[lam, train].predict(X), y, qid)

    values, chosen = [], []
    for k in range(5):
        others = [j for j in range(5) if j != k]
        by_lam = {lam: np.concatenate([measured(lam, (k, j), j) for j in others]).mean() for lam in lams}
        chosen.append(max(by_lam, key=by_lam.__getitem__))
        values.append(measured(chosen[-1], (k,), k))
        print(name, "fold", k + 1, chosen[-1], f"{values[-1].mean():.4f}", flush=True)
    return values, chosen
