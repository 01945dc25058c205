"""``python -m fuzz``: random inputs for all that reads files, messages and arguments."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from fuzz.campaign import Tally, hunt, sanitizers
from fuzz.child import limit_memory
from fuzz.target import judged
from fuzz.targets import TARGETS


def parsed() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together (default 10)")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="one of them; may be repeated")
    parser.add_argument("--seed", type=int, help="default: the time; the same seed tries the same inputs")
    parser.add_argument("--core", type=Path, help="folder of the core with sanitizers; without it there are none")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="folder for findings")
    parser.add_argument("--replay", type=Path, help="run one saved input instead, or all of the corpus in a folder")
    return parser.parse_args()


def replay(path: Path, targets: list[str]) -> int:
    """Run saved inputs in this process: one, or FOLDER/TARGET/* for all targets."""
    inputs = [(name, path) for name in targets] if path.is_file() else saved(path)
    limit_memory()
    failures = 0
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        for name, each in inputs:
            finding = judged(TARGETS[name](), each.read_bytes())
            print(f"{name} {each.name}: {'fine' if finding is None else finding.report}", flush=True)
            failures += finding is not None
        os.chdir("/")
    return int(failures > 0)


def saved(folder: Path) -> list[tuple[str, Path]]:
    """Return the targets and the inputs of a corpus."""
    return [(each.name, path) for each in sorted(folder.iterdir()) for path in sorted(each.iterdir())]


def core_in(folder: Path | None) -> Path | None:
    """Return the core with sanitizers, None if there is none that this system can load."""
    found = None if folder is None else next(folder.resolve().glob("_core*.so"), None)
    if found is not None and not sanitizers():
        print("the compiler has no library of sanitizers that could be loaded first: fuzzing without them")
        return None
    return found


def line(name: str, tally: Tally) -> str:
    """Return a target's line of the report."""
    rate = tally.executions / max(tally.seconds, 1e-9)
    return f"{name:12} {tally.executions:9} runs {rate:8.0f}/s {len(tally.findings):4} findings"


def main() -> int:
    """Fuzz; 1 if something was found."""
    options = parsed()
    if options.replay:
        return replay(options.replay.resolve(), options.target or [])
    core = core_in(options.core)
    seed = options.seed if options.seed is not None else int(time.time())
    names = options.target or sorted(TARGETS)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    print(
        f"seed {seed}, {len(names)} targets, {options.minutes:g} minutes, "
        f"{'address and undefined-behavior sanitizers' if core else 'no sanitizers'}",
        flush=True,
    )
    found: list[Path] = []
    for name in names:
        tally = hunt(name, seed, 60.0 * options.minutes / len(names), out, core)
        print(line(name, tally), flush=True)
        found += tally.findings
    for path in found:
        about = json.loads(path.read_text())
        print(f"\n{about['kind']} of {about['target']}: {about['place']}\n  input: {path.with_suffix('.input')}")
        print("  " + "\n  ".join(about["report"].strip().splitlines()[-6:]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
