"""Dask workers killed at random moments: a valid certificate, or an error that says so within 10 seconds.

    python benchmarks/faults_dask.py [--runs 30] [--workers 2] [--rows 20000] [--columns 50]

Each run is a process with a cluster of its own. A random worker gets SIGKILL at a random moment from the placing of
the shards on. Three kinds of runs take turns: workers that are started again (`restarted`), workers that are not, of
which one is killed (`one`), and of which all are killed, one shortly after the other (`all`).

    outcome   "certified": ended in good order, and the certificate fits that of one process
              the name of the error otherwise; WorkerLost is expected where all workers are killed
    after     seconds from the last kill to the end of the run
    remade    shards that were made anew

A run that takes longer than --timeout seconds counts as hung. The exit code is 1 if any was, or ended otherwise.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np

import bmrm
from bmrm.parallel import DaskEngine, EngineError
from bmrm.risks import linear_risk

KINDS = ("restarted", "one", "all")
LAM, TOL, LIMIT = 1e-4, 1e-5, 10.0


def sample(rows, columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    return X, np.where(X @ rng.normal(size=columns) + 5.0 * rng.normal(size=rows) > 0.0, 1.0, -1.0)


@contextlib.contextmanager
def workers(n, restarted):
    """Start a scheduler here, and workers; give a client and the process ids of the workers."""
    from distributed import Client, LocalCluster

    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard", "--nthreads", "1"]
    command += [] if restarted else ["--no-nanny"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", silence_logs="CRITICAL") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        processes = [subprocess.Popen([*command, cluster.scheduler_address], **silent) for _ in range(n)]
        try:
            client.wait_for_workers(n, timeout=120)
            yield client, list(client.run(os.getpid).values())
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=20)
                process.kill()


class Killer(threading.Thread):
    """Kills processes at a random moment."""

    def __init__(self, pids, within, draw):
        super().__init__(daemon=True)
        self.pids, self.draw, self.wait, self.at = pids, draw, draw.uniform(0.0, within), None

    def run(self):
        time.sleep(self.wait)
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            self.at = time.monotonic()
            time.sleep(self.draw.uniform(0.0, 0.5))


def one_run(arguments):
    """Train while a worker is killed; print what became of it."""
    draw = random.Random(arguments.inside)
    kind = KINDS[arguments.inside % len(KINDS)]
    X, y = sample(arguments.rows, arguments.columns)
    parts = np.array_split(np.arange(len(y)), 2 * arguments.workers)
    with workers(arguments.workers, kind == "restarted") as (client, pids):
        draw.shuffle(pids)
        killer = Killer(pids if kind == "all" else pids[:1], arguments.within, draw)
        with DaskEngine(client) as engine:
            killer.start()
            found = trained(engine, X, y, parts)
        found["after"] = 0.0 if killer.at is None else time.monotonic() - killer.at
        killer.join()
    print(json.dumps({"kind": kind, "wait": killer.wait, "killed": killer.at is not None, **found}))


def trained(engine, X, y, parts):
    try:
        shards = bmrm.Shards.from_arrays([(X[part],) for part in parts], engine)
        result = bmrm.solve(bmrm.Problem(linear_risk(shards, y, "hinge"), "l2", LAM), "ls_bmrm", tol=TOL)
    except EngineError as error:
        return {"outcome": type(error).__name__, "words": str(error)}
    bounds = {"upper": result.certificate.upper, "lower": result.certificate.lower}
    return {"outcome": result.status.name, **bounds, "remade": shards.placed.remade, "seconds": result.seconds}


def judged(record, exact):
    """Return the outcome in a word, and whether it is as it must be."""
    outcome, kind = record["outcome"], record["kind"]
    if outcome == "CONVERGED":
        fits = record["lower"] <= exact.upper and exact.lower <= record["upper"] <= record["lower"] * (1.0 + 2.0 * TOL)
        return ("certified", True) if fits else ("WRONG CERTIFICATE", False)
    return outcome, outcome == "WorkerLost" and kind == "all" and record["after"] <= LIMIT


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--within", type=float, default=4.0, help="seconds in which a worker is killed")
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--inside", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside is not None:
        return one_run(arguments)
    X, y = sample(arguments.rows, arguments.columns)
    exact = bmrm.solve(bmrm.Problem(bmrm.LinearRisk(X, y, "hinge"), "l2", LAM), tol=1e-8).certificate
    print("run  kind       killed at  outcome            after   remade", flush=True)
    wrong = 0
    for run in range(arguments.runs):
        command = [sys.executable, __file__, *sys.argv[1:], "--inside", str(run)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            output = child.communicate(timeout=arguments.timeout)[0]
            record = json.loads(output.splitlines()[-1])
            outcome, fine = judged(record, exact)
        except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
            record, outcome, fine = {"kind": KINDS[run % 3], "wait": 0.0, "after": 0.0}, type(error).__name__, False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        wrong += not fine
        when = f"{record['wait']:6.2f} s" if record.get("killed") else "  never "
        after, remade = record["after"], record.get("remade", "")
        print(f"{run:3d}  {record['kind']:9s}  {when}   {outcome:17s} {after:5.1f} s  {remade}", flush=True)
    print(f"{arguments.runs - wrong} of {arguments.runs} runs ended as they must")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
