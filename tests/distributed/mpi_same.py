"""Run by test_mpi on all ranks: the same answers as in one place."""

from __future__ import annotations

import json
import warnings

import numpy as np
from catalogue import all_losses, sample_for, sharded

import bmrm
from bmrm import Problem, losses, solve
from bmrm.parallel import EngineError, engine

OPTIMA = ("hinge", "logistic", "quantile", "softmax", "pairwise_rank", "roc_area", "multilabel_hinge", "ordinal")


def off(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), 1e-300)


def values(ranks) -> dict[str, float]:
    """How far R(w) and its subgradient are off, relative to those in one place."""
    found = {}
    for loss in all_losses():
        X, y, groups = sample_for(loss)
        one, other = bmrm.LinearRisk(X, y, loss, groups=groups), sharded(loss, X, y, groups, ranks)
        w = np.random.default_rng(1).normal(size=one.dim)
        (value, a), (its, b) = one.evaluate(w), other.evaluate(w)
        size = np.abs(a).max() + np.abs(value)
        found[repr(loss)] = max(off(value, its), float(np.abs(a - b).max() / size) if loss.couples != "all" else 0.0)
    return found


def optima(ranks) -> dict[str, float]:
    """How far certified optima are off."""
    found = {}
    for loss in {loss.name: loss for loss in all_losses() if loss.name in OPTIMA}.values():
        X, y, groups = sample_for(loss)
        for regularizer in ("l2", "l1"):
            risks = bmrm.LinearRisk(X, y, loss, groups=groups), sharded(loss, X, y, groups, ranks)
            one, other = (solve(Problem(risk, regularizer, lam=0.05), tol=1e-10) for risk in risks)
            if one.converged:
                assert other.converged, (loss, regularizer, other.status)
                found[f"{loss!r} {regularizer}"] = off(one.certificate.upper, other.certificate.upper)
    return found


def structured(ranks) -> float:
    rng = np.random.default_rng(0)
    model = bmrm.ChainModel(n_labels=3, n_attributes=2)
    X = [rng.normal(size=(n, 2)) for n in (3, 1, 4, 2)]
    y = [rng.integers(3, size=len(x)).tolist() for x in X]
    placed = bmrm.Shards.empty(2, ranks).placed
    one = bmrm.StructuredRisk(X, y, losses.StructuredLog(model))
    other = bmrm.ShardedStructuredRisk(placed, [X[:1], X[1:]], [y[:1], y[1:]], losses.StructuredLog(model))
    w = rng.normal(size=one.dim)
    return off(one.evaluate(w)[0], other.evaluate(w)[0])


def moved(ranks) -> dict[str, object]:
    """Large arrays there and back, more shards than ranks, a warning, and a set of shards that is let go."""
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(3, 40_000)), np.ones(3)) for _ in range(7)]
    parts[5] = (parts[5][0][:, :39_999], parts[5][1])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        shards = bmrm.Shards.from_arrays(parts, ranks)
    w = rng.normal(size=40_000)
    scores = np.concatenate([X @ w[: X.shape[1]] for X, _ in parts])
    right = bool(np.allclose(bmrm.data.Design(shards).dot(w), scores))
    owners = sorted(set(shards.placed.workers()))
    shards.placed.release()
    try:
        shards.placed.call("about")
    except EngineError as error:
        gone = str(error)
    return {"right": right, "owners": owners, "said": [str(each.message) for each in said], "gone": gone}


if __name__ == "__main__":
    with engine("mpi") as ranks:
        if ranks is not None:
            done = {"values": values(ranks), "optima": optima(ranks), "moved": moved(ranks), "n": ranks.n_workers}
    with engine("mpi") as ranks:  # it can be entered again
        if ranks is not None:
            print(json.dumps(done | {"structured": structured(ranks)}))
