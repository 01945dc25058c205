"""The claims, each with its figures and a verdict."""

from dataclasses import dataclass

import numpy as np

from runner.cells import NAMED
from runner.measure import TIE

NO_PEER = ("", None)


def ms(seconds):
    """A time for people."""
    if seconds is None:
        return "–"
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{1e3 * seconds:.{1 if seconds < 0.1 else 0}f} ms"


def fastest(outcomes, target, only=None):
    """Name and time of the fastest that arrived, of those whose name begins as given."""
    arrived = {
        name: found[target]["seconds"]
        for name, found in outcomes.items()
        if found.get(target, {}).get("seconds") and (only is None or name.startswith(only))
    }
    name = min(arrived, key=arrived.get, default="")
    return (name, arrived[name]) if name else NO_PEER


@dataclass(frozen=True)
class Duel:
    """Our time in a cell against the best other one; a peer that did not arrive counts with its cap."""

    cell: object
    target: float
    ours: float
    name: str
    other: float
    arrived: bool

    @property
    def ratio(self):
        """How many times faster we are."""
        return self.other / self.ours

    @property
    def won(self):
        """At least as fast; 3 ms are a tie."""
        return self.ours <= self.other + TIE

    @property
    def slower(self):
        """How many times slower, ties apart."""
        return 1.0 if self.won else self.ours / self.other


def duels(store, families, target, only=None, keep=lambda cell, record: True):
    """Our time against the best peer's in every cell of these families in which peers ran."""
    found = []
    for cell, record in store.cells():
        mine = record["ours"][target]
        ran = {name: peer for name, peer in record["peers"].items() if target in peer}
        ran = {name: peer for name, peer in ran.items() if only is None or name.startswith(only)}
        if cell.family not in families or not ran or not keep(cell, record):
            continue
        name, other = fastest(ran, target)
        cap = min(peer[target].get("cap", np.inf) for peer in ran.values())
        found.append(Duel(cell, target, mine["seconds"] or np.inf, name, other or cap, other is not None))
    return [duel for duel in found if duel.arrived or np.isfinite(duel.ours)]


def mean(ratios):
    """Geometric mean."""
    values = np.asarray(list(ratios), dtype=float)
    return float(np.exp(np.mean(np.log(values)))) if values.size else float("nan")


def figures(found):
    """Cells, share won, worst, mean with and without the cells where nobody arrived."""
    arrived = [duel for duel in found if duel.arrived]
    return {
        "cells": len(found),
        "arrived": len(arrived),
        "share": np.mean([duel.won for duel in found]) if found else float("nan"),
        "worst": max((duel.slower for duel in found), default=float("nan")),
        "mean": mean(duel.ratio for duel in found),
        "where": mean(duel.ratio for duel in arrived),
    }


def sentence(f):
    """The figures in words."""
    return (
        f"{f['cells']} cells, a peer arrives in {f['arrived']}; at least as fast in {100 * f['share']:.0f} %, worst "
        f"{f['worst']:.2f} times slower, mean {f['mean']:.2f} times faster ({f['where']:.2f} where a peer arrives)"
    )


def claim(title, text, holds):
    """One line; holds is None where nothing was measured."""
    verdict = "NOT MEASURED" if holds is None else "PASS" if holds else "FAIL"
    return f"{verdict} {title}: {text}"


def margin(store):
    """hinge, logistic, squared_hinge with l2."""
    loose, tight = (figures(duels(store, ("margin",), target)) for target in (1e-3, 1e-6))
    if loose["cells"]:
        bars = loose["share"] >= 0.85 and loose["worst"] <= 1.5 and loose["mean"] >= 1.5
        yield claim("margin losses at 1e-3 (85 %, 1.5, 1.5)", sentence(loose), bars)
    if tight["cells"]:
        bars = not tight["where"] < 1.3 and tight["mean"] >= 3.0 and tight["worst"] <= 2.0
        yield claim("margin losses at 1e-6 (worst 2, mean 3, 1.3 where a peer arrives)", sentence(tight), bars)


def robust(store):
    """Quantile, epsilon-insensitive, least absolute, huber with both regularizers."""
    for target in (1e-3, 1e-6):
        found = figures(duels(store, ("robust",), target))
        if found["cells"]:
            yield claim(f"robust losses at {target:g} (mean 3)", sentence(found), found["mean"] >= 3.0)
    large = lambda cell, record: record["shape"][0] >= 20000 and cell.loss.startswith("quantile")  # noqa: E731
    found = figures(duels(store, ("robust",), 1e-6, only="QuantileRegressor", keep=large))
    if found["cells"]:
        title = "QuantileRegressor from 20 000 rows on, at 1e-6 (mean 30; those that do not arrive count with the cap)"
        yield claim(title, sentence(found), found["mean"] >= 30.0)


def sparse(store):
    """Logistic and least squares with l1, against the packages that the claim names."""
    for target in (1e-3, 1e-6):
        found = figures(duels(store, ("l1", "lasso"), target, only=NAMED))
        if found["cells"]:
            bars = found["mean"] >= 1.0 and found["worst"] <= 2.5
            yield claim(f"l1 at {target:g} (mean 1, worst 2.5)", sentence(found), bars)


def portfolio(store):
    """auto against the best of our own methods."""
    ratios = []
    for _, record in store.cells():
        for target, mine in record["ours"].items():
            other = fastest(record["own"], target)[1]
            if record["own"] and mine["seconds"]:
                ratios.append(1.0 if other is None or mine["seconds"] <= other + TIE else mine["seconds"] / other)
    if ratios:
        share = np.mean(np.asarray(ratios) <= 1.3)
        text = f"within 1.3 in {100 * share:.0f} % of {len(ratios)} cells, worst {max(ratios):.1f}"
        yield claim("auto against our own best method (90 %)", text, share >= 0.9)


def slope(x, y):
    """Of the line through the logarithms."""
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-12)), 1)[0])


def growing(store):
    """Time and memory against the number of rows."""
    for key, record in store.records.items():
        if "rows" not in record:
            continue
        time = slope(record["rows"], record["seconds"])
        times = ", ".join(ms(seconds) for seconds in record["seconds"])
        yield claim(f"{key}: slope of time (1.1)", f"{time:.2f} ({times})", time <= 1.1)
        if all(record["bytes"]):
            memory = slope(record["rows"], record["bytes"])
            share = max(np.divide(record["bytes"], record["data_bytes"]))
            text = f"{memory:.2f}, at most {share:.1f} times the data on top of it"
            yield claim(f"{key}: slope of memory (1.1)", text, memory <= 1.1)


def footprint(store):
    """Memory of a fit against QuantileRegressor's."""
    for record in store.records.values():
        ours = record.get("memory", {}).get("bmrm auto", [0])
        if not all(ours):
            continue
        grows = slope(record["sizes"], ours)
        share = max(np.divide(ours, record["data_bytes"]))
        text = f"{grows:.2f}, at most {share:.1f} times the data on top of it"
        for name, bytes_ in record["memory"].items():
            if name != "bmrm auto" and bytes_[-1]:
                text += f"; {name} {bytes_[-1] / record['data_bytes'][-1]:.0f} times"
        yield claim(f"{record['key']}: slope of memory (1.1)", text, grows <= 1.1)


def lines(store):
    """All claims of which something was measured."""
    return [line for part in (margin, robust, sparse, portfolio, growing, footprint) for line in part(store)]


def lost(store):
    """The cells in which a peer was faster by more than a tie."""
    families = {"margin": None, "robust": None, "l1": NAMED, "lasso": NAMED, "counts": None}
    found = [duel for t in (1e-3, 1e-6) for name, only in families.items() for duel in duels(store, (name,), t, only)]
    return sorted((duel for duel in found if not duel.won), key=lambda duel: -duel.slower)
