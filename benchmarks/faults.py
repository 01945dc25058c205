"""Kills a random worker with SIGKILL at a random moment of a distributed run, and tells how the run ended.

    python benchmarks/faults.py [--engine mpi] [--runs 30] [--processes 4] [--seed 0]

Two series of runs, both with mpiexec of Open MPI:

    with fault tolerance (--with-ft ulfm)   the shards of the killed rank are made anew by the others. A run is right if
        it ends with a certificate that agrees with that of the undisturbed run, or with a typed error within 10 s.
    without   mpiexec ends the run. It is right if that takes no more than 10 s, the exit code is not 0, and --resume
        from the checkpoint gives the weights of the undisturbed run, bit for bit.

The moment is drawn from the time that the undisturbed run takes, counted from where the ranks have met (in the second
series: from the first checkpoint). Rank 0, which has the bundle, is not killed: see kill_resume.py for that.
"""

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from engines import Generated, mpiexec, risk_of

import bmrm
from bmrm.parallel import EngineError, engine

LIMIT = 10.0  # seconds from the kill to the end of a run that does not go on
LONGEST = 120.0  # a run that takes longer hangs
TOL = 1e-6
TRAIN = ("--loss", "hinge", "--solver", "bmrm", "--lam", "1e-6", "--tol", "1e-9", "--max-iter", "120", "--threads", "1")
CHECKPOINT = ("--checkpoint", "run.checkpoint", "--checkpoint-seconds", "0.05", "--resume")


def inside(processes):
    """Run on the ranks: train, and print the certificate or the error."""
    with engine("mpi") as ranks:
        if ranks is None:
            return
        print("met", flush=True)
        try:
            risk, placed = risk_of([Generated(seed, 4000, 60) for seed in range(2 * processes)], ranks, "hinge")
            result = bmrm.solve(bmrm.Problem(risk, "l2", 1e-4), "ls_bmrm", tol=TOL)
            proved = result.certificate
            found = {"upper": proved.upper, "lower": proved.lower, "iterations": result.iterations}
            found |= {"lost": ranks.n_workers - len(ranks.alive), "calls": placed.calls}
        except EngineError as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)


class Ranks:
    """A run under mpiexec."""

    def __init__(self, n, *command, ulfm=False):
        self.process = subprocess.Popen(
            mpiexec(n, *command, ulfm=ulfm), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True,
        )  # fmt: skip

    def worker(self, rng):
        """Return the process of a rank but the first; None if there is none any more."""
        workers = []
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            for child in children:
                environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
                workers += [int(child)] if environment != [b""] and b"PMIX_RANK=0" not in environment else []
        except OSError:
            return None
        return rng.choice(sorted(workers)) if workers else None

    def killed(self, rng):
        """Kill a worker and return when; None if the run had ended."""
        worker = self.worker(rng)
        if worker is None or self.process.poll() is not None:
            return None
        os.kill(worker, signal.SIGKILL)
        return time.monotonic()

    def ended(self):
        """Return the exit code and what was printed; None as the code of a run that hangs."""
        try:
            out, _ = self.process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return None, ""
        return self.process.returncode, out


def tolerant(arguments, rng, seconds=None, reference=None):
    """Make a run with fault tolerance, killed after some part of the seconds; return the outcome and the figures."""
    ranks = Ranks(arguments.processes, __file__, "--inside", "--processes", arguments.processes, ulfm=True)
    ranks.process.stdout.readline()
    began = time.monotonic()
    moment = None
    if seconds is not None:
        time.sleep(rng.uniform(0.0, seconds))
        moment = ranks.killed(rng)
    code, out = ranks.ended()
    took = time.monotonic() - (moment or began)
    if code is None:
        return "HANGS", {}, took
    found = json.loads(out.splitlines()[-1]) if out.strip() else {}
    if "upper" not in found:
        return ("typed error" if "error" in found and took <= LIMIT else "WRONG END"), found, took
    if reference is None:
        return "undisturbed", found, took
    agrees = found["lower"] <= reference["upper"] and reference["lower"] <= found["upper"]
    closed = found["upper"] - found["lower"] <= 2.0 * TOL * abs(found["upper"])
    if code != 0 or not agrees or not closed:
        return "WRONG RESULT", found, took
    return (
        ("went on without the rank" if found["lost"] else "had ended before" if moment is None else "lost unseen"),
        found,
        took,
    )


def write_data(parts):
    for seed in range(parts):
        shard = Generated(seed, 3000, 40)()
        bmrm.write(f"part{seed}.npz", shard.data.X, shard.data.y)


def command(*more):
    parts = sorted(map(str, Path().glob("part*.npz")))
    return ["-m", "bmrm", "train", *parts, *TRAIN, "--engine", "mpi", "--quiet", "--model", "model.bmrm", *more]


def weights():
    model = bmrm.load("model.bmrm")
    return model.coef.tobytes() + model.intercept.tobytes()


def plain(arguments, rng, seconds, whole):
    """Make a run without fault tolerance, killed and resumed."""
    for path in ("run.checkpoint", "model.bmrm"):
        Path(path).unlink(missing_ok=True)
    ranks = Ranks(arguments.processes, *command(*CHECKPOINT))
    while not Path("run.checkpoint").exists() and ranks.process.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.uniform(0.0, seconds))
    moment = ranks.killed(rng)
    code, _ = ranks.ended()
    took = time.monotonic() - (moment or time.monotonic())
    if code is None:
        return "HANGS", took
    if moment is not None and (code == 0 or took > LIMIT):
        return "WRONG END", took
    subprocess.run(
        mpiexec(arguments.processes, *command(*CHECKPOINT)), check=False, capture_output=True, timeout=LONGEST
    )
    litter = [file for file in os.listdir() if file.endswith(".tmp")]
    if weights() != whole or litter:
        return "OTHER WEIGHTS", took
    return "had ended before" if moment is None else "ended, resumed to the same weights", took


def shown(title, outcomes):
    print(f"{title}: {len(outcomes)} runs")
    for outcome, number in collections.Counter(outcome for outcome, _ in outcomes).most_common():
        longest = max(took for which, took in outcomes if which == outcome)
        print(f"  {number:3d}  {outcome} (at most {longest:.1f} s from the kill to the end)")
    return all(outcome == outcome.lower() for outcome, _ in outcomes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=["mpi"], default="mpi")
    parser.add_argument("--runs", type=int, default=30, help="of each series")
    parser.add_argument("--series", choices=["both", "tolerant", "plain"], default="both")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return inside(arguments.processes)
    rng, right = random.Random(arguments.seed), True
    if arguments.series != "plain":
        _, reference, seconds = tolerant(arguments, rng)
        print(f"undisturbed: {seconds:.1f} s, {reference}")
        outcomes = []
        for number in range(arguments.runs):
            outcome, found, took = tolerant(arguments, rng, seconds, reference)
            print(f"{number + 1:3d} {outcome}, {took:.1f} s; {found}", flush=True)
            outcomes.append((outcome, took))
        right &= shown("with fault tolerance", outcomes)
    if arguments.series != "tolerant":
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            write_data(2 * arguments.processes)
            subprocess.run(mpiexec(arguments.processes, *command()), check=False, capture_output=True, timeout=LONGEST)
            whole, seconds = weights(), bmrm.load("model.bmrm").history["seconds"]
            outcomes = []
            for number in range(arguments.runs):
                outcomes.append(plain(arguments, rng, seconds, whole))
                print(f"{number + 1:3d} {outcomes[-1][0]}, {outcomes[-1][1]:.1f} s", flush=True)
            right &= shown("without", outcomes)
            os.chdir(os.path.dirname(folder))
    return None if right else sys.exit(1)


if __name__ == "__main__":
    main()
