"""The benchmark against other packages: every adapter minimizes our objective, and the runner works from end to end."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
sys.path.insert(0, str(PEERS))
try:
    check = importlib.import_module("runner.check")
    peers = importlib.import_module("runner.peers")
    claims = importlib.import_module("runner.claims")
    cells = importlib.import_module("runner.cells")
    cli = importlib.import_module("runner.cli")
    growth = importlib.import_module("runner.growth")
    memory = importlib.import_module("runner.memory")
    measure = importlib.import_module("runner.measure")
    store = importlib.import_module("runner.store")
    worker = importlib.import_module("runner.worker")
finally:
    sys.path.remove(str(PEERS))


def cases() -> list[Any]:
    """Every adapter that is installed with every problem; compilers take long, and packages that lack are named."""
    found = []
    for adapter, loss, regularizer in check.cases():
        marks = [pytest.mark.slow] if adapter.compiles else []
        name = f"{adapter.label}-{loss}-{regularizer}".replace(" ", "_")
        found.append(pytest.param(adapter, loss, regularizer, id=name, marks=marks))
    for package in peers.missing():
        skip = pytest.mark.skip(reason=f"{package} is not installed")
        found.append(pytest.param(None, "", "", id=package, marks=skip))
    return found


@pytest.mark.parametrize(("adapter", "loss", "regularizer"), cases())
def test_same_objective(adapter: Any, loss: str, regularizer: str) -> None:
    found = check.distance(adapter, loss, regularizer)
    assert -1e-9 <= found <= adapter.reach(loss)


def test_every_loss_of_a_claim_has_a_peer() -> None:
    for family in cells.FAMILIES.values():
        for pair in family.pairs:
            assert any(peer.takes(*pair) for peer in peers.peers(["sklearn"])) or pair == ("quantile_0.9", "l2")


class Stuck:
    """An adapter that cannot be warmed up."""

    label = "stuck"

    def set_objective(self, **objective: Any) -> None:
        """Take any problem."""

    def warm_up(self) -> None:
        """Fail."""
        raise RuntimeError("no")


def test_a_peer_that_does_not_start_is_not_started_again() -> None:
    one = worker.Worker(Stuck(), cells.load("gen_small"))
    try:
        assert one.fit(cells.Cell("margin", "gen_small", "hinge", "l2", 0.1), 1e-3, 1.0) == {"error": "warm-up"}
        one.stop()
        assert one.fit(cells.Cell("margin", "gen_small", "hinge", "l2", 0.01), 1e-3, 1.0) == {"error": "warm-up"}
        assert one.process is None
    finally:
        one.stop()


def test_runner_from_end_to_end(tmp_path: Path) -> None:
    options = f"--build {tmp_path} --output {tmp_path}/pages"
    cell = "--family margin --data gen_small --loss hinge --lam 0.1 --peers LinearSVC"
    command = [sys.executable, str(PEERS / "run.py")]
    done = subprocess.run([*command, *cell.split(), *options.split()], capture_output=True, text=True, check=True)
    assert "gen_small/hinge/l2/0.1" in done.stdout
    assert "margin losses at 1e-3" in done.stdout
    record = json.loads((tmp_path / "scratch.jsonl").read_text().splitlines()[0])
    for target in ("0.001", "1e-06"):
        assert record["ours"][target]["error"] <= float(target)
        assert record["peers"]["LinearSVC dual"][target]["seconds"] > 0.0
    assert record["upper"] - record["lower"] <= measure.CERTAIN * 1e-6 * record["upper"]
    pytest.importorskip("matplotlib", reason="the pages have figures")
    (tmp_path / "scratch.jsonl").rename(tmp_path / "results.jsonl")
    subprocess.run([*command, "--redraw", *options.split()], capture_output=True, check=True)
    assert "LinearSVC dual" in (tmp_path / "pages" / "hinge.md").read_text()
    assert (tmp_path / "pages" / "hinge.png").stat().st_size > 5_000
    page = (tmp_path / "pages" / "index.md").read_text()
    assert "## Claims" in page
    minutes = store.Store(tmp_path / "results.jsonl").minutes()
    assert 0.0 < minutes < 5.0
    assert f"in {minutes:.0f} minutes" in page


def record(ours: float, peer: float | None, cap: float = 1.0) -> dict[str, Any]:
    missed = {"seconds": None, "why": "cap", "cap": cap}
    outcome = {t: missed if peer is None else {"seconds": peer} for t in cells.TARGETS}
    times = {t: {"seconds": ours} for t in cells.TARGETS}
    return {"shape": [9, 9], "ours": times, "peers": {"liblinear": outcome}, "own": {}}


def test_claims_count_ties_and_caps(tmp_path: Path) -> None:
    results = store.Store(tmp_path / "results.jsonl")
    for lam, times in {0.1: (0.010, 0.008), 0.01: (0.1, 0.05), 0.001: (0.1, None)}.items():
        cell = cells.Cell("margin", "a9a", "hinge", "l2", lam)
        results.add(cell.key, {"cell": vars(cell), **record(*times)})
    found = claims.figures(claims.duels(store.Store(results.path), ("margin",), 1e-3))  # as read back
    assert found["cells"] == 3
    assert found["arrived"] == 2
    assert found["share"] == pytest.approx(2 / 3)  # one tie, one that no peer reached
    assert found["worst"] == pytest.approx(2.0)
    assert found["mean"] == pytest.approx((0.8 * 0.5 * 10.0) ** (1 / 3))
    assert [duel.cell.lam for duel in claims.lost(results)] == [0.01, 0.01]


class Ladder:
    """A peer whose error falls with its tolerance, and whose time grows."""

    def __init__(self, seconds: float) -> None:
        self.adapter, self.seconds = self, seconds
        self.ladder, self.patience, self.pruned = (1e-2, 1e-4, 1e-7), 10.0, True

    def fit(self, cell: Any, stop: float, cap: float) -> dict[str, Any]:
        seconds = self.seconds * (3 + self.ladder.index(stop))
        return {"error": "cap"} if seconds > cap else {"seconds": seconds, "value": 1.0 + stop}


def test_ladder_takes_the_first_rung_that_is_good_enough() -> None:
    ours, best = dict.fromkeys(cells.TARGETS, 0.01), dict.fromkeys(cells.TARGETS, float("inf"))
    reference = measure.Reference(1.0, 1.0)
    peer = Ladder(0.1)
    found = measure.Climb(peer, None, reference, measure.Cap(ours, peer, best)).search(cells.TARGETS)
    assert [found[t]["stop"] for t in cells.TARGETS] == [1e-4, 1e-7]
    for first in peer.ladder:  # whatever rung the search begins at
        again = measure.Climb(peer, None, reference, measure.Cap(ours, peer, best)).search(cells.TARGETS, first)
        assert again == found
    slow = Ladder(0.3)
    found = measure.Climb(slow, None, reference, measure.Cap(ours, slow, best)).search(cells.TARGETS)
    assert [found[t]["why"] for t in cells.TARGETS] == ["cap", "cap"]
    cap = measure.Cap(ours, peer, dict.fromkeys(cells.TARGETS, 0.01))
    found = measure.Climb(peer, None, reference, cap).search(cells.TARGETS)
    assert [found[t]["why"] for t in cells.TARGETS] == ["slower", "slower"]
    late = Ladder(0.22)  # its last rung is over the cap, the one before it is not
    found = measure.Climb(late, None, reference, measure.Cap(ours, late, best)).search(cells.TARGETS)
    assert found[1e-3]["stop"] == 1e-4
    assert found[1e-6]["why"] == "cap"


class Alike(Ladder):
    """A peer whose loosest tolerances all end after one step, and whose tightest meet a limit of its own."""

    def __init__(self) -> None:
        super().__init__(0.01)
        self.ladder, self.fits = tuple(10.0**-k for k in range(30)), 0

    def fit(self, cell: Any, stop: float, cap: float) -> dict[str, Any]:
        self.fits += 1
        return {"seconds": 0.01, "value": 2.0 if stop > 2e-9 else 1.0001}


def test_tolerances_that_end_alike_are_passed_at_the_loose_end_only() -> None:
    ours, unknown = dict.fromkeys(cells.TARGETS, 0.01), dict.fromkeys(cells.TARGETS, float("inf"))
    peer = Alike()
    found = measure.Climb(peer, None, measure.Reference(1.0, 1.0), measure.Cap(ours, peer, unknown)).search(
        cells.TARGETS
    )
    assert found[1e-3]["stop"] in peer.ladder[9:11]
    assert found[1e-6]["why"] == "ladder"
    assert peer.fits < 15


class Hopeless(Ladder):
    """A peer whose error is halved by each of many rungs, the first of which takes most of the time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.ladder, self.fits = tuple(0.5**k for k in range(20)), 0

    def fit(self, cell: Any, stop: float, cap: float) -> dict[str, Any]:
        self.fits += 1
        return {"seconds": 0.3 + self.seconds * self.ladder.index(stop), "value": 1.0 + stop}


@pytest.mark.parametrize(("seconds", "fits"), [(0.01, 19), (0.2, 2)])
def test_a_peer_that_would_need_twice_its_cap_is_given_up(seconds: float, fits: int) -> None:
    ours, unknown = dict.fromkeys(cells.TARGETS, 0.01), dict.fromkeys(cells.TARGETS, float("inf"))
    peer = Hopeless(seconds)
    climb = measure.Climb(peer, None, measure.Reference(1.0, 1.0), measure.Cap(ours, peer, unknown))
    found = climb.search(cells.TARGETS)
    assert peer.fits == fits
    if fits == 2:
        assert [found[t]["why"] for t in cells.TARGETS] == ["cap", "cap"]  # 0.3 s, and 0.2 for each half of the error
    else:
        assert found[1e-3]["stop"] == 0.5**10


class Ours:
    """Our side: certified at once, after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def fit(self, cell: Any, stop: float, cap: float) -> dict[str, Any]:
        return {"seconds": self.seconds, "value": 1.0, "lower": 1.0, "converged": True}


class Peer(Ladder):
    """A peer that takes every problem."""

    label, data = "peer", {"X": None, "y": None}

    def skip(self, *problem: Any) -> tuple[bool, None]:
        return False, None


@pytest.mark.parametrize(("seconds", "cap"), [(0.01, 1.0), (0.5, 5.0), (5.0, 10.0), (30.0, 30.0)])
def test_cap_is_a_multiple_of_our_time_within_limits(seconds: float, cap: float) -> None:
    unknown = dict.fromkeys(cells.TARGETS, float("inf"))
    assert measure.Cap(dict.fromkeys(cells.TARGETS, seconds), Ladder(0.1), unknown).full[1e-3] == cap


def test_peers_are_tried_where_ours_takes_long_but_not_after_a_miss(tmp_path: Path) -> None:
    field = measure.Field(Ours(2.0), [Peer(0.1)], {})
    cell = cells.Cell("margin", "a9a", "hinge", "l2", 0.1)
    optima = store.Optima(tmp_path / "optima.json")
    found = field.measure(cell, optima)["peers"]["peer"]
    assert [outcome["stop"] for outcome in found.values()] == [1e-4, 1e-7]
    field.misses.update({("hinge", "l2", "peer", t): 1 for t in cells.TARGETS})
    found = field.measure(cell, optima)["peers"]["peer"]
    assert all(outcome["why"] == "not tried" for outcome in found.values())


def test_a_cell_without_a_bound_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (cells.Cell("margin", "gen_small", "hinge", "l2", lam) for lam in (0.1, 0.01))

    def measured(field: Any, cell: Any, optima: Any) -> dict[str, Any]:
        if cell == one:
            raise measure.NoBound("no bound")
        return record(0.1, 0.2)

    monkeypatch.setattr(measure.Field, "measure", measured)
    results = store.Store(tmp_path / "results.jsonl")
    run = cli.Run(cli.parse(["--own", "--build", str(tmp_path)]), results)
    assert run.one_set("gen_small", [one, other], 1.0) == [one.key]
    assert [cell for cell, _ in results.cells()] == [other]
    assert 0.0 < results.minutes() == run.counted


def test_memory_of_a_fit_is_measured_and_shown(tmp_path: Path) -> None:
    if not memory.peak():
        pytest.skip("the system does not tell how much memory a process has taken")
    results = store.Store(tmp_path / "results.jsonl")
    memory.run(results, growth.rows, sizes=(200, 400))
    taken = store.Store(results.path).records[memory.KEY]["memory"]
    assert list(taken) == ["bmrm auto", memory.PEER]
    assert 0 < taken[memory.PEER][0] < 1e9
    results.records[memory.KEY]["memory"]["bmrm auto"] = [32_000, 128_000]  # as if it grew with the square
    assert [line.partition(" ")[0] for line in claims.lines(results)] == ["FAIL"]
    pytest.importorskip("matplotlib", reason="the pages have figures")
    page = importlib.import_module("runner.report").summary(results, [], tmp_path / "lost.md", 2)
    assert "| 400 | 0.1 | 0.1 (1.9 times)" in page
