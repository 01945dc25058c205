"""The process that runs one target: what kills it leaves its last input in the slot.

``python -m fuzz.child TARGET SEED SECONDS FOLDER``; FOLDER has the slot, the pool of inputs that were worth keeping,
and takes the findings.
"""

from __future__ import annotations

import faulthandler
import hashlib
import importlib
import importlib.util
import json
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzz.target import Finding, Target

SLOT_BYTES = 1 << 20
_HEAD = struct.Struct("<QQ")  # executions begun, bytes of the input
_POOL = 400  # inputs: beyond that the oldest ones are tried seldom anyway
_MOST_DATA = 1 << 30  # bytes of memory that a run without sanitizers may have for itself


def use_sanitized_core() -> None:
    """Load the compiled core from the folder that the campaign names, before the package loads its own."""
    place = os.environ.get("BMRM_FUZZ_CORE")
    if not place:
        return
    spec = importlib.util.spec_from_file_location("bmrm._core", place)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["bmrm._core"] = core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    import bmrm

    bmrm._core = core


def limit_memory() -> None:
    """Bound the memory of this process where no sanitizer does."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_DATA, hard))


class Slot:
    """The input that is being run, where the parent finds it whatever happens to this process."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), SLOT_BYTES)
        self.count = _HEAD.unpack_from(self._map)[0]

    def put(self, data: bytes) -> None:
        """Note that an execution begins."""
        self.count += 1
        self._map[_HEAD.size : _HEAD.size + len(data)] = data
        _HEAD.pack_into(self._map, 0, self.count, len(data))


def read_slot(path: Path) -> tuple[int, bytes]:
    """Return the number of executions and the last input."""
    content = path.read_bytes()
    count, size = _HEAD.unpack_from(content)
    return count, content[_HEAD.size : _HEAD.size + size]


def keep(folder: Path, target: str, finding: Finding, data: bytes) -> None:
    """Write a finding and its input, unless one at that place is there."""
    mark = hashlib.sha256(f"{finding.kind} {finding.place}".encode()).hexdigest()[:10]
    path = folder / f"{target}-{finding.kind}-{mark}"
    if not path.with_suffix(".json").exists():
        path.with_suffix(".input").write_bytes(data)
        about = {"target": target, "kind": finding.kind, "place": finding.place, "report": finding.report}
        path.with_suffix(".json").write_text(json.dumps(about))


def explore(target: Target, seed: int, seconds: float, folder: Path) -> None:
    """Run mutated inputs until the time is over."""
    from fuzz.lines import Lines
    from fuzz.target import judged

    rng, slot, lines = random.Random(seed), Slot(folder / "slot"), Lines()
    kept = folder / "pool" / target.name
    kept.mkdir(parents=True, exist_ok=True)
    seeds = target.seeds()
    pool = seeds + [path.read_bytes() for path in sorted(kept.iterdir())]
    first, end = pool[slot.count :][::-1], time.monotonic() + seconds  # those before a death have had their turn
    while time.monotonic() < end:
        try:
            data = first.pop() if first else target.mutate(rng, rng.choice(pool), rng.choice(pool))
        except StopIteration:  # the target has nothing more to try
            return
        slot.put(data)
        if target.traced:
            with lines:
                finding = judged(target, data)
        else:
            finding = judged(target, data)
        if finding is not None:
            keep(folder, target.name, finding, data)
        elif target.traced and lines.grew() and data not in pool and len(pool) < _POOL:
            pool.append(data)
            (kept / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def main() -> None:
    """Run the target of the command line."""
    name, seed, seconds, folder = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4])
    faulthandler.register(signal.SIGUSR1)
    use_sanitized_core()
    if not os.environ.get("BMRM_FUZZ_CORE"):
        limit_memory()
    from fuzz.targets import TARGETS

    module, _, cls = name.partition(":")  # of a target of one's own
    made = getattr(importlib.import_module(module), cls) if cls else TARGETS[name]
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        try:
            explore(made(), seed, seconds, folder)
        finally:
            os.chdir("/")


if __name__ == "__main__":
    main()
