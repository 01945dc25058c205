"""Fuzzing: what was found once stays mended, and a campaign survives, tells and keeps what its targets run into."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.campaign import hunt
from fuzz.mutate import havoc, havoc_json
from fuzz.target import judged
from fuzz.targets import TARGETS

TESTS = Path(__file__).resolve().parents[1]


def test_inputs_that_were_found_once_are_fine():
    command = [sys.executable, "-m", "fuzz", "--replay", str(TESTS / "fuzz" / "corpus")]
    found = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(TESTS)}, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of memory and signals are those of POSIX")
def test_a_campaign_survives_and_keeps_what_it_finds(tmp_path):
    tally = hunt("fuzz.targets.broken:Broken", 1, 250.0, tmp_path, None)
    kinds = {json.loads(path.read_text())["kind"]: path.with_suffix(".input") for path in tally.findings}
    assert {kind: path.read_bytes() for kind, path in kinds.items()} == {
        "crash": b"die",
        "memory": b"memory",
        "error": b"error",
    }
    assert tally.deaths == 1
    assert tally.executions == 5


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_targets_take_their_seeds_and_change_them_by_the_seed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = TARGETS[name]()
    seeds = target.seeds()
    if name not in ("core", "calls"):  # there, hostile from the start
        assert [judged(target, data) for data in seeds] == [None] * len(seeds)
    one, two = (random.Random(7) for _ in range(2))
    changed = [target.mutate(one, data, seeds[0]) for data in seeds]
    assert changed == [target.mutate(two, data, seeds[0]) for data in seeds]
    assert changed != seeds


def test_mutations_are_bounded_and_repeatable():
    rng = random.Random(1)
    data = b"1 2:3\n" * 10
    sizes = [len(havoc(rng, data, data)) for _ in range(300)]
    assert max(sizes) <= 1 << 16
    for _ in range(300):
        havoc_json(rng, b'{"a": [1, {"b": null}], "c": "x"}')
