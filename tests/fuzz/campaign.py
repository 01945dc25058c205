"""The campaign: targets one after the other, each in a process that may crash, hang or ask for too much memory."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from fuzz.child import SLOT_BYTES, keep, read_slot
from fuzz.target import Finding

HANG = 30.0  # seconds: inputs have 64 kB at most and take milliseconds, under sanitizers and load too
_START = 60.0  # seconds until a process has imported everything and made its seeds
_WAITING = 10.0  # times as long on the wall
_LARGEST_MB = 512  # of one allocation: 64 kB of input cannot justify it
_MOST_RSS_MB = 4096
_MOST_REPORT = 20_000  # characters: what a sanitizer says first, and where Python was
_ASAN = (
    f"detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb={_LARGEST_MB}:quarantine_size_mb=16"
    f":hard_rss_limit_mb={_MOST_RSS_MB}:detect_stack_use_after_return=0:handle_abort=1:fast_unwind_on_malloc=1"
)
_SUMMARY = re.compile(r"^SUMMARY: (.*)$|^(.*runtime error: .*)$|^(.*Assertion .* failed.*)$", re.MULTILINE)

_OWN = re.compile(r"^ +#\d+ .* \S*/cpp/(\S+:\d+)", re.MULTILINE)


@dataclass
class Tally:
    """What a target has been through."""

    executions: int = 0
    seconds: float = 0.0
    deaths: int = 0
    findings: list[Path] = field(default_factory=list)


@cache
def sanitizers() -> tuple[str, ...]:
    """Return the libraries to load before all others; none where the system or the compiler has no such thing."""
    if sys.platform != "linux":
        return ()
    # The second one so that exceptions are known when the first one starts.
    names = (("libasan.so", f"libclang_rt.asan-{platform.machine()}.so"), ("libstdc++.so",))
    found = [next((path for path in map(_library, each) if path), "") for each in names]
    return tuple(found) if all(found) else ()


def _library(name: str) -> str:
    """Return where the compiler has a library, an empty text if it has none."""
    command = [os.environ.get("CXX", "c++"), f"-print-file-name={name}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return answer if os.path.isabs(answer) else ""


def environment(core: Path | None) -> dict[str, str]:
    """Return the environment of a child: with the sanitizers' library before all others where the core has them."""
    here = Path(__file__).resolve().parents[1]
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    found = os.environ | single | {"PYTHONPATH": str(here), "PYTHONHASHSEED": "0"}
    if core is None:
        return found
    options = {"ASAN_OPTIONS": _ASAN, "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
    return found | options | {"LD_PRELOAD": " ".join(sanitizers()), "BMRM_FUZZ_CORE": str(core)}


def hunt(target: str, seed: int, seconds: float, out: Path, core: Path | None) -> Tally:
    """Fuzz one target for that time; findings are written to `out`."""
    tally, began = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slot").write_bytes(bytes(SLOT_BYTES))
        while (left := seconds - (time.monotonic() - began)) > 0.0:
            finding, data = _one_process(target, seed + tally.deaths, left, folder, core)
            if finding is None:
                break
            tally.deaths += 1
            keep(folder, target, finding, data)
        tally.executions = read_slot(folder / "slot")[0]
        for path in [*folder.glob("*.json"), *folder.glob("*.input")]:
            (out / path.name).write_bytes(path.read_bytes())
        tally.findings = sorted(out / path.name for path in folder.glob("*.json"))
    tally.seconds = time.monotonic() - began
    return tally


def _one_process(
    target: str, seed: int, seconds: float, folder: Path, core: Path | None
) -> tuple[Finding | None, bytes]:
    """Run one child until its time is over or its life; None if it has ended well."""
    errors = folder / "stderr"
    command = [sys.executable, "-m", "fuzz.child", target, str(seed), str(seconds), str(folder)]
    with errors.open("wb") as stream:
        child = subprocess.Popen(command, env=environment(core), stdout=stream, stderr=stream)
    try:
        hangs = _watched(child, folder / "slot")
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    _, data = read_slot(folder / "slot")
    text = errors.read_text(errors="replace")
    report = text if len(text) < _MOST_REPORT else text[: _MOST_REPORT // 2] + "\n...\n" + text[-_MOST_REPORT // 2 :]
    if hangs:
        return Finding("hang", _python_place(report), report), data
    if child.returncode == 0:
        return None, data
    return Finding("crash", f"{_called(data)}{_crash_place(report, child.returncode)}", report), data


def _called(data: bytes) -> str:
    """Return what the input calls, if it is a call."""
    try:
        return f"{json.loads(data)['call']} "
    except (ValueError, TypeError, KeyError):
        return ""


def _watched(child: subprocess.Popen[bytes], slot: Path) -> bool:
    """Wait for the child; True if one input takes too long. Its threads say on standard error where they are.

    What counts is processor time: on a busy machine waiting is no sign of anything. A deadlock takes none, so that the
    clock on the wall decides in the end.
    """
    count, since, used, patience = read_slot(slot)[0], time.monotonic(), 0.0, _START
    while child.poll() is None:
        time.sleep(0.2)
        now, cpu = read_slot(slot)[0], _processor_seconds(child.pid)
        if now != count:
            count, since, used, patience = now, time.monotonic(), cpu, HANG
        elif cpu - used > patience or time.monotonic() - since > _WAITING * patience:
            child.send_signal(signal.SIGUSR1)
            time.sleep(1.0)
            return child.poll() is None
    return False


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process, 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _crash_place(report: str, code: int) -> str:
    """Return what went wrong and the first line of the core on the way."""
    found, own = _SUMMARY.search(report), _OWN.search(report)
    if not found:
        return f"exit code {code} {_python_place(report)}"
    what = next(group for group in found.groups() if group)
    return f"{own[1]}: {what}" if own else what


def _python_place(report: str) -> str:
    found = re.findall(r'File "[^"]*/bmrm/([^"]*)", line (\d+)', report)
    return " ".join(found[0]) if found else ""
