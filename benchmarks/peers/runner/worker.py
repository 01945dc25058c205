"""A process for each adapter, forked when the data is in memory: it can be killed, and shares the data."""

import gc
import multiprocessing
import os
import signal
import time
import warnings

from benchmark_utils.layout import make
from objective import Objective

CONTEXT = multiprocessing.get_context("fork")
WARM_SECONDS = 30.0
GRACE = 0.1  # seconds for the answer on top of the cap


def serve(connection, adapter, data):
    """Answer requests (loss, regularizer, lam, stop, cap) until the other end is closed."""
    warnings.simplefilter("ignore")
    gc.disable()
    ready = {}
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        try:
            for message in answer(adapter, data, ready, *request):
                connection.send(message)
        except Exception as error:
            connection.send({"error": f"{type(error).__name__}: {error}"})


def answer(adapter, data, ready, loss, regularizer, lam, stop, cap):
    """Time one fit: a message when it begins, one when it ends, one with what it found; stop None only warms up."""
    key = (loss, regularizer, lam)
    if ready.get("key") != key:
        objective = make(Objective, loss=loss, regularizer=regularizer, lam=lam)
        objective.set_data(**data)
        ready.update(key=key, objective=objective)
        adapter.set_objective(**objective.get_objective())
    if stop is None:
        if ready.get("warm") != (loss, regularizer):
            adapter.warm_up()
            ready["warm"] = (loss, regularizer)
            gc.collect()
            gc.freeze()  # what is loaded by now is not searched for garbage before each fit
        yield {}
        return
    adapter.cap = cap
    gc.collect()
    yield {}
    began = time.perf_counter()
    adapter.run(stop)
    seconds = time.perf_counter() - began
    yield {}
    value = ready["objective"].evaluate_result(**adapter.get_result())["value"]
    yield {"seconds": seconds, "value": value, **adapter.info}


class Worker:
    """The parent's side: fits with a cap; a process that passes it is killed, and replaced when next needed."""

    def __init__(self, adapter, data):
        self.adapter, self.data = adapter, data
        self.process = self.connection = self.warm = None
        self.stuck = set()  # loss and regularizer whose warm-up failed: it would again, and may take its time

    def start(self):
        """Fork."""
        self.connection, other = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=serve, args=(other, self.adapter, self.data), daemon=True)
        self.process.start()
        other.close()
        self.warm = None

    def stop(self):
        """Kill the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process.close()
            self.process = None

    def fit(self, cell, stop, cap):
        """One fit: a dict with seconds and value, or with the reason why there is none."""
        problem = (cell.loss, cell.regularizer, cell.lam)
        if problem[:2] in self.stuck:
            return {"error": "warm-up"}
        if self.process is None:
            self.start()
        waits = [WARM_SECONDS, cap + GRACE, WARM_SECONDS]  # until it begins, ends, is evaluated
        if self.warm != problem:
            found = self.ask((*problem, None, WARM_SECONDS), [WARM_SECONDS])
            if "error" in found:
                self.stuck.add(problem[:2])
                return {"error": "warm-up"}
            self.warm = problem
        found = self.ask((*problem, stop, cap), waits)
        return {"error": "cap"} if found.get("seconds", 0.0) > cap else found

    def ask(self, request, waits):
        """Send a request and wait so long for each of the answers; the last one, or the first error.

        The process is stopped in between: threads of BLAS or OpenMP spin for a tenth of a second after their last work,
        which would take a processor from the next fit, whoever's it is.
        """
        os.kill(self.process.pid, signal.SIGCONT)
        try:
            return self.answers(request, waits)
        finally:
            if self.process is not None:
                os.kill(self.process.pid, signal.SIGSTOP)

    def answers(self, request, waits):
        """The last answer, or the first error; a process that is late is killed."""
        found = {"error": "cap"}
        try:
            self.connection.send(request)
            for seconds in waits:
                if not self.connection.poll(seconds):
                    self.stop()
                    return {"error": "cap"}
                found = self.connection.recv()
                if "error" in found:
                    break
        except (EOFError, OSError):
            self.stop()
            return {"error": "the process died"}
        return found
