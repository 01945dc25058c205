"""One cell: our time, every peer's ladder under a cap, then interleaved repeats of the fastest."""

from collections import defaultdict
from math import log
from statistics import median

from runner.cells import TARGETS

CAP_SECONDS = 1.0  # the cap is the larger of this and a multiple of our time
MOST_SECONDS = 10.0  # but no more than this, or our time: who has not arrived by then counts as if just arriving
LONG = 2.0  # where ours takes longer, our other methods are not tried
OUR_SECONDS = 20.0
OWN_SECONDS = 3.0  # for our other methods: longer ones are not waited for
TIE = 3e-3
CLOSE = 1.3  # a peer this much slower than the fastest is measured once, the others again
PRUNED = 1.3  # a fit this much slower than the fastest peer may be stopped
MISSES = 1  # after so many larger lam in a row without arriving, a peer is not tried again
HOPELESS = 2.0  # caps that a peer may need at the rate it has had so far, to be tried with a tighter tolerance
SLOW = 0.3  # of the cap: after a fit as long, rungs are climbed one by one
STALLED = 3  # fits in a row with the same objective: the peer has a limit of its own,
LOOSE = 6  # unless these are its loosest tolerances, all of which end after its first step
CERTAIN = 0.05  # the gap of the optimum, relative to the target
OWN = (
    "dual_coordinate",
    "semismooth_newton",
    "newton",
    "coordinate",
    "interior_point",
    "ls_bmrm",
    "lbfgs",
    "row_lbfgs",
    "owlqn_star",
)


def rounds(seconds):
    """How often the fastest are measured again; short cells 21 times, cells of seconds not at all."""
    return 21 if seconds < 0.02 else 5 if seconds < 0.1 else 3 if seconds < 0.5 else 1 if seconds < 2.0 else 0


class NoBound(Exception):
    """Nothing is known of the optimum of a cell, so that nobody can be judged."""


class Reference:
    """The optimum of a cell, its proven gap, and how far a value is from it."""

    def __init__(self, upper, lower):
        self.upper, self.lower = upper, lower
        self.gap = (upper - lower) / abs(upper) if upper else 0.0

    def error(self, value):
        """Relative suboptimality."""
        return (value - self.upper) / abs(self.upper) if self.upper else value

    def serves(self, target):
        """Whether the optimum is known well enough to judge this accuracy."""
        return self.gap <= CERTAIN * target


class Cap:
    """How long a fit of a peer may take for each accuracy; less once a faster peer is known."""

    def __init__(self, ours, adapter, best):
        most = {t: max(MOST_SECONDS, ours[t]) for t in TARGETS}
        self.full = {t: max(CAP_SECONDS, min(adapter.patience * ours[t], most[t])) for t in TARGETS}
        self.now = dict(self.full)
        if adapter.pruned:
            self.now = {t: min(self.full[t], PRUNED * best[t] + 0.02) for t in TARGETS}

    @property
    def is_full(self):
        """Whether no faster peer is known."""
        return self.now == self.full

    def missed(self, target, why):
        """The record of an accuracy that was not reached."""
        if why == "cap" and self.now[target] < self.full[target]:
            why = "slower"
        return {"seconds": None, "why": why, "cap": self.full[target]}


class Climb:
    """A peer's ladder: the loosest rung that meets each accuracy, searched from a rung that is likely to be near."""

    def __init__(self, worker, cell, reference, cap):
        self.worker, self.cell, self.reference, self.cap = worker, cell, reference, cap
        self.ladder, self.found, self.why = list(worker.adapter.ladder), {}, "ladder"
        self.hopeless = set()  # accuracies that it would not reach within the cap
        self.ended = []  # seconds and error of each fit that ended

    def search(self, targets, first=None):
        """The outcome for each accuracy: down from before the given rung while the loosest is met, then up from it."""
        start = max(0, self.ladder.index(first) - 1) if first in self.ladder else 0
        loosest, same = max(targets), 0
        error = self.tries(start, targets)
        if error == float("inf") and start > 0 and self.cap.is_full:
            start = 0
            error = self.tries(start, targets)
        for rung in range(start - 1, -1, -1):
            if loosest not in self.found or self.tries(rung, [loosest]) > loosest:
                break
        rung, last = start, len(self.ladder) - 1
        while rung < last and same < self.most_alike() and error != float("inf"):
            unmet = [t for t in targets if t not in self.found and t not in self.hopeless]
            if not unmet:
                break
            before, below = error, rung
            rung = min(rung + (1 if self.slow(unmet) else 2), last)
            error = self.tries(rung, unmet)
            passed = unmet if error == float("inf") else [t for t in unmet if t in self.found]
            if passed and rung - 1 > below:  # two at a time, then the one between if that was too much
                self.tries(rung - 1, passed)
            same = same + 1 if error == before else 0
        return {t: self.found.get(t) or self.missed(t) for t in targets}

    def missed(self, target):
        """The record of an accuracy that was not reached."""
        return self.cap.missed(target, "cap" if target in self.hopeless else self.why)

    def most_alike(self):
        """How many fits in a row may end alike."""
        return STALLED if len({error for _, error in self.ended}) > 1 else LOOSE

    def slow(self, targets):
        """Whether the last fit took a good part of what it may."""
        return self.ended[-1][0] > SLOW * max(self.cap.full[t] for t in targets)

    def tries(self, rung, targets):
        """Fit with one rung and note what it meets within the cap; how far from the optimum it ends."""
        fit = self.worker.fit(self.cell, self.ladder[rung], max(self.cap.now[t] for t in targets))
        if "error" in fit:
            self.why = fit["error"]
            return float("inf")
        error, seconds = self.reference.error(fit["value"]), fit["seconds"]
        self.ended.append((seconds, error))
        for target in targets:
            if seconds > self.cap.now[target]:
                self.found.setdefault(target, self.cap.missed(target, "cap"))
            elif error <= target and seconds < (self.found.get(target, {}).get("seconds") or float("inf")):
                self.found[target] = {"seconds": seconds, "stop": self.ladder[rung], "error": error}
            elif error > target and self.needed(target) > HOPELESS * self.cap.full[target]:
                self.hopeless.add(target)
        return error

    def needed(self, target):
        """Seconds to the target if errors go on falling as from the last but one fit to the last; 0 if unknown."""
        if len(self.ended) < 2:
            return 0.0
        (before, above), (seconds, error) = self.ended[-2:]
        if not (seconds > before and target < error < above < float("inf")):
            return 0.0
        return seconds + (seconds - before) * log(error / target) / log(above / error)


def our_outcome(fit, target, reference):
    """The record of our run for one accuracy."""
    if not fit.get("converged", False):
        return {"seconds": None, "why": fit.get("error", "not converged")}
    return {"seconds": fit["seconds"], "error": reference.error(fit["value"]), "stop": target}


class Field:
    """Everyone who takes part on one data set, and what is known from the larger values of lam."""

    def __init__(self, ours, peers, own):
        self.ours, self.peers, self.own = ours, peers, own
        self.misses, self.last, self.rungs = defaultdict(int), {}, {}

    def measure(self, cell, optima):
        """The record of one cell; without our other methods where ours takes long."""
        fits = {t: self.ours.fit(cell, t, 2 * OUR_SECONDS) for t in TARGETS}
        seconds = {t: fit["seconds"] if fit.get("converged") else OUR_SECONDS for t, fit in fits.items()}
        upper, lower = optima.get(cell, lambda: self.optimum(cell, fits.values()))
        reference = Reference(upper, lower)
        ours = {t: our_outcome(fit, t, reference) for t, fit in fits.items()}
        record = {"upper": upper, "lower": lower, "ours": ours, "peers": {}, "own": {}}
        judged = [t for t in TARGETS if reference.serves(t)]
        if judged:
            record["peers"] = self.race(cell, reference, seconds, judged)
        if self.own and max(seconds.values()) <= LONG:
            limits = {t: min(seconds[t] + TIE, OWN_SECONDS) for t in TARGETS}
            record["own"] = {name: self.rival(worker, cell, limits) for name, worker in self.own.items()}
        for target in TARGETS:
            self.repeat(cell, record, target)
        return record

    def optimum(self, cell, fits):
        """Upper and lower bound, near enough to judge every accuracy, or as near as the fits at hand have come."""
        nearest = self.ours.fit(cell, 0.5 * CERTAIN * min(TARGETS), OUR_SECONDS + 5.0)
        known = [fit for fit in (nearest, *fits) if "lower" in fit]
        if not known:
            raise NoBound(f"{cell.key}: no bound of the optimum: {nearest['error']}")
        return min(fit["value"] for fit in known), max(fit["lower"] for fit in known)

    def race(self, cell, reference, ours, judged):
        """Every peer that takes the problem, the fastest so far first."""
        best = dict.fromkeys(TARGETS, float("inf"))
        found = {}
        path = (cell.loss, cell.regularizer)
        for worker in sorted(self.taking(cell), key=lambda w: self.expected((*path, w.adapter.label))):
            label = worker.adapter.label
            cap = Cap(ours, worker.adapter, best)
            tried = self.untold(cell, label, judged)
            first = self.rungs.get((*path, label, tried[0])) if tried else None
            found[label] = Climb(worker, cell, reference, cap).search(tried, first) if tried else {}
            found[label] |= {t: cap.missed(t, "not tried") for t in judged if t not in tried}
            for target, outcome in found[label].items():
                self.remember((*path, label), target, outcome)
                best[target] = min(best[target], outcome["seconds"] or float("inf"))
        return found

    def taking(self, cell):
        """The peers that take the problem."""
        problem = (cell.loss, cell.regularizer, cell.lam)
        return [w for w in self.peers if not w.adapter.skip(w.data["X"], w.data["y"], *problem)[0]]

    def untold(self, cell, label, targets):
        """The accuracies that a peer has not missed at larger lam."""
        return [t for t in targets if self.misses[(cell.loss, cell.regularizer, label, t)] < MISSES]

    def remember(self, who, target, outcome):
        """Count misses in a row, and keep the last time."""
        if outcome["seconds"] is not None:
            self.misses[(*who, target)] = 0
            self.last[who], self.rungs[(*who, target)] = outcome["seconds"], outcome["stop"]
            return
        self.last[who] = outcome["cap"]
        self.misses[(*who, target)] += outcome["why"] in ("cap", "ladder")

    def expected(self, who):
        """A guess of the time: that at the larger lam, else what is often fast comes first."""
        return self.last.get(who, 0.0 if "liblinear" in who[-1] else 0.5)

    def rival(self, worker, cell, limits):
        """One of our own methods; it is not waited for longer than `auto` or the fastest of them took."""
        found = {}
        for target in TARGETS:
            times = []
            for _ in range(2):  # the first may be slow in a new process
                fit = worker.fit(cell, target, limits[target])
                times += [fit["seconds"]] if fit.get("converged") else []
                if not times or times[0] > 0.2:
                    break
            if not times and limits[max(TARGETS)] > 0.5 * limits[min(TARGETS)]:  # the others would not be met either
                return found | {t: {"seconds": None, "stop": t} for t in TARGETS if t not in found}
            found[target] = {"seconds": min(times, default=None), "stop": target}
            limits[target] = min([limits[target], *(t + TIE for t in times)])
        return found

    def repeat(self, cell, record, target):
        """Measure the fastest again, by turns."""
        ours = record["ours"][target]
        if ours["seconds"] is None:
            return
        turns = [(self.ours, ours)]
        for workers, outcomes, most in (
            ({w.adapter.label: w for w in self.peers}, record["peers"], 2),
            (self.own, record["own"], 1),
        ):
            arrived = {name: found[target] for name, found in outcomes.items() if found.get(target, {}).get("seconds")}
            limit = CLOSE * min((outcome["seconds"] for outcome in arrived.values()), default=0.0) + TIE
            close = [(workers[name], outcome) for name, outcome in arrived.items() if outcome["seconds"] <= limit]
            turns += sorted(close, key=lambda turn: turn[1]["seconds"])[:most]
        shortest = min(outcome["seconds"] for _, outcome in turns)
        samples = [[outcome["seconds"]] if shortest >= 0.2 else [] for _, outcome in turns]
        for _ in range(rounds(shortest)):
            for (worker, outcome), taken in zip(turns, samples):
                fit = worker.fit(cell, outcome["stop"], 2.0 * OUR_SECONDS)
                taken += [fit["seconds"]] if "seconds" in fit else []
        for (_, outcome), taken in zip(turns, samples):
            outcome.update(seconds=median(taken or [outcome["seconds"]]), repeats=len(taken))
