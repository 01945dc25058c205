"""Checkpoints: what is written, what is refused, and how a run ends that has one."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from dataclasses import dataclass, replace

import numpy as np
import pytest

import bmrm
from bmrm import Checkpoint, LinearRisk, Problem, Status, solve
from bmrm._core import ActiveSetQp
from bmrm._errors import DataError
from bmrm.checkpoint_file import Section, UnknownStateError
from bmrm.data.archive import write_archive
from bmrm.regularizers import L2
from bmrm.solvers import BMRM, SGD, SOLVERS, Solver, Step


def problem(lam=1e-3, loss="hinge", regularizer="l2", seed=0, m=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 5))
    return Problem(LinearRisk(X, np.where(X[:, 0] + rng.normal(size=m) > 0, 1.0, -1.0), loss), regularizer, lam)


@pytest.fixture
def file(tmp_path):
    """A checkpoint of a run stopped after three steps."""
    path = tmp_path / "run.checkpoint"
    solve(problem(), "bmrm", tol=1e-9, max_iter=3, checkpoint=path)
    return path


def resumed(path, made, solver="bmrm", **options):
    return solve(made, solver, checkpoint=Checkpoint(path, resume=True), **{"tol": 1e-9, **options})


def again(value, known=None):
    return Section.of(value, known).value(known)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2**200, -0.0, 1e-320, "text", (), [], {}, (1, [2.5, None]), {"a": (1,), 3: "b"}, {2, 1},
        np.random.default_rng(1).bit_generator.state,
    ],
    ids=repr,
)  # fmt: skip
def test_plain_values(value):
    got = again(value)
    assert got == value
    assert type(got) is type(value)
    assert repr(got) == repr(value)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, np.float64(0.1), np.int32(3), np.bool_(True)])
def test_numbers_keep_their_type(value):
    got = again(value)
    assert type(got) is type(value)
    assert repr(got) == repr(value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_keep_their_layout(dtype, shape, order):
    array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape), dtype=dtype, order=order)
    got = again([array, np.ones(2)])[0]
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(got, array)
    assert (got.flags.c_contiguous, got.flags.f_contiguous) == (array.flags.c_contiguous, array.flags.f_contiguous)
    assert got.flags.writeable


def test_what_is_shared_is_shared_again():
    array = np.ones(3)
    got = again({"one": array, "two": [array], "queue": deque([array], maxlen=2)})
    assert got["one"] is got["two"][0] is got["queue"][0]
    assert got["queue"].maxlen == 2
    known = object()
    assert again([known], {"it": known})[0] is known


def test_regularizers_are_made_of_their_parameters():
    regularizer = L2(weights=np.array([1.0, 0.0]), bounds=(-1.0, np.array([2.0, 3.0])))
    assert regularizer.free.tolist() == [1]
    got = again(regularizer)
    np.testing.assert_array_equal(got.weights, regularizer.weights)
    assert got.free.tolist() == [1]


@pytest.mark.parametrize("value", [object(), 1j, np.array(["a"]), np.array([None]), lambda: 0, {1: [int]}])
def test_other_types_are_refused(value):
    with pytest.raises(UnknownStateError):
        Section.of(value)


def test_quadratic_program_goes_on_to_the_last_digit():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(12, 4))
    one = ActiveSetQp(np.ones(1))
    for k in range(8):
        one.add(A[: k + 1] @ A[k], np.ones(1))
    one.set_start(np.eye(8)[0])
    one.solve(rng.normal(size=8))
    two = again(one)
    for k in range(8, 12):
        for each in (one, two):
            each.add(A[: k + 1] @ A[k], np.ones(1))
        b = np.linspace(-1.0, 1.0, k + 1) * k
        assert one.solve(b).tobytes() == two.solve(b).tobytes()
        assert one.multipliers().tobytes() == two.multipliers().tobytes()


@pytest.mark.parametrize("change", [lambda s: s[:-1], lambda s: np.append(s, 0.0), lambda s: s * 1.5, lambda s: s[:0]])
def test_state_of_another_program_is_refused(change):
    program = ActiveSetQp(np.ones(1))
    program.add(np.ones(1), np.ones(1))
    program.set_start(np.ones(1))
    with pytest.raises(ValueError, match="not the state"):
        ActiveSetQp.__new__(ActiveSetQp).__setstate__(change(program.__getstate__()))


def test_run_that_is_over_is_returned_as_it_was(tmp_path):
    path = tmp_path / "run"
    first = solve(problem(), tol=1e-6, checkpoint=path)
    made = problem()
    second = resumed(path, made, "auto", tol=1e-6)
    assert made.risk.products == 1  # the objective is computed anew
    assert second.history == first.history
    assert (second.status, second.certificate) == (first.status, first.certificate)
    assert second.w.tobytes() == first.w.tobytes()
    tighter = resumed(path, problem(), "auto", tol=1e-9)
    assert tighter.converged
    assert tighter.history[: first.iterations] == first.history


def test_limits_count_the_whole_run(file):
    result = resumed(file, problem(), max_iter=3)
    assert (result.status, result.iterations) == (Status.ITERATION_LIMIT, 3)
    assert resumed(file, problem(), max_iter=5).iterations == 5
    assert resumed(file, problem(), max_seconds=60.0).converged


def test_no_file_starts_afresh(tmp_path):
    assert resumed(tmp_path / "none", problem()).converged


def test_a_file_is_not_overwritten_by_mistake(file):
    before = file.read_bytes()
    with pytest.raises(DataError, match="there is a checkpoint already"):
        solve(problem(), "bmrm", checkpoint=file)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("made", "solver", "options", "message"),
    [
        (lambda: problem(lam=0.5), "bmrm", {}, "lam is 0.001 there and 0.5 here"),
        (lambda: problem(loss="logistic"), "bmrm", {}, r"loss is 'hinge\(\)' there and 'logistic\(\)' here"),
        (lambda: problem(regularizer="l1"), "bmrm", {}, "regularizer is 'l2"),
        (problem, "ls_bmrm", {}, "solver is 'bmrm"),
        (problem, BMRM(max_cuts=7), {}, "max_cuts=7"),
        (problem, "bmrm", {"seed": 1}, "seed is 0 there and 1 here"),
        (lambda: problem(m=61), "bmrm", {}, "rows is 60 there and 61 here"),
    ],
)
def test_other_runs_are_refused_with_the_difference(file, made, solver, options, message):
    with pytest.raises(DataError, match=f"run.checkpoint: the checkpoint belongs to another run: .*{message}"):
        resumed(file, made(), solver, **options)


def test_changed_data_are_noticed(file):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    assert resumed(file, Problem(LinearRisk(X, y, "hinge"), "l2", 1e-3), max_iter=3).iterations == 3
    changed = X.copy()
    changed[17, 3] += 1e-9
    cases = {
        "the entries of X differ": (changed, y, {}),
        "the targets differ": (X, -y, {}),
        "the sample weights differ": (X, y, {"sample_weight": np.arange(1.0, 61.0)}),
        "the offsets differ": (X, y, {"offset": np.ones(60)}),
    }
    for message, (data, targets, given) in cases.items():
        with pytest.raises(DataError, match=message):
            resumed(file, Problem(LinearRisk(data, targets, "hinge", **given), "l2", 1e-3))


def test_oracles_are_told_by_their_answers(tmp_path):
    class Oracle:
        dim = 2

        def __init__(self, shift):
            self.shift = shift

        def evaluate(self, w):
            return float(np.abs(w - self.shift).sum()), np.sign(w - self.shift)

    path = tmp_path / "run"
    solve(Problem(Oracle(1.0), "l2", 0.1), "bmrm", max_iter=1, checkpoint=path)
    assert resumed(path, Problem(Oracle(1.0), "l2", 0.1)).converged
    with pytest.raises(DataError, match=r"R\(0\) is '2' there and '4' here"):
        resumed(path, Problem(Oracle(2.0), "l2", 0.1))


def test_damaged_files_are_refused(file):
    content = file.read_bytes()
    for damaged in (b"", content[: len(content) // 2], b"text", content[:300] + b"\x01" + content[301:]):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"run\.checkpoint: not a checkpoint, or a damaged one"):
            resumed(file, problem())
    bmrm_model = {"format": "bmrm model", "format_version": 1}
    write_archive(file, bmrm_model, {"section 0 tree": np.zeros(1, np.uint8)})
    with pytest.raises(DataError, match="its header does not say 'bmrm checkpoint'"):
        resumed(file, problem())
    file.unlink()
    file.mkdir()
    with pytest.raises(DataError, match="is a directory"):
        resumed(file, problem())


def test_unknown_classes_in_a_file_are_refused():
    section = Section.of({"a": {1}})
    broken = replace(section, tree=section.tree.replace('"set": [1]', '"object": "os.system", "state": "true"'))
    with pytest.raises(DataError, match=r"an object of an unknown class, 'os\.system'"):
        broken.value()
    with pytest.raises(DataError, match="it does not hold what it says"):
        replace(section, tree='{"id": 1, "array": ["<f8", 0]}').value()
    with pytest.raises(DataError, match="cut off"):
        replace(Section.of(np.ones(3)), arrays={"<f8": np.ones(2)}).value()


def test_place_that_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        solve(problem(), checkpoint=tmp_path / "none" / "run")
    with pytest.raises(ValueError, match="seconds between two checkpoints"):
        Checkpoint(tmp_path / "run", seconds=-1.0)


def test_failed_writing_does_not_end_the_run(tmp_path, monkeypatch):
    def full(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr("bmrm.checkpoint.write_archive", full)
    with pytest.warns(UserWarning, match="was not written .No space left on device.; the run goes on"):
        assert solve(problem(), checkpoint=tmp_path / "run").converged


def test_leftovers_of_killed_writers_are_removed(tmp_path):
    mine, other = tmp_path / ".run.0123456789abcdef.tmp", tmp_path / ".run.more.0123456789abcdef.tmp"
    for each in (mine, other):
        each.write_bytes(b"half")
    solve(problem(), checkpoint=tmp_path / "run")
    assert not mine.exists()
    assert other.exists()


@dataclass
class _Private:
    step: int


def test_solver_with_an_unknown_state_is_named(tmp_path):
    class Private(Solver, name="private"):
        def steps(self, problem, start):
            for step in BMRM().steps(problem, start):
                yield Step(step.w, step.upper, step.lower, step.bundle, _Private(1))

    try:
        with pytest.raises(TypeError, match=r"solver 'private' cannot be saved: its state holds a .*_Private"):
            solve(problem(), Private(), checkpoint=tmp_path / "run")
    finally:
        SOLVERS.pop("private")


def test_path_takes_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="path takes no checkpoint"):
        bmrm.path(problem().risk, "l2", [1.0, 0.1], checkpoint=tmp_path / "run")


def test_several_parts_share_a_file(tmp_path):
    path = tmp_path / "run"
    problems = [problem(seed=seed) for seed in range(3)]
    whole = [solve(each, "bmrm", tol=1e-9) for each in problems]
    for part, limit in enumerate((None, 2)):
        solve(problem(seed=part), "bmrm", tol=1e-9, max_iter=limit, checkpoint=Checkpoint(path, part=part))
    for part, expected in enumerate(whole):
        got = solve(problem(seed=part), "bmrm", tol=1e-9, checkpoint=Checkpoint(path, resume=True, part=part))
        assert got.w.tobytes() == expected.w.tobytes()
        assert got.certificate == expected.certificate
    tighter = solve(problem(seed=0), "bmrm", tol=1e-11, checkpoint=Checkpoint(path, resume=True, part=0))
    assert tighter.certificate.closes(1e-11)  # its planes were dropped: it goes on from w


def test_random_numbers_go_on(tmp_path):
    whole = solve(problem(), SGD(), tol=1e-12, max_iter=9, seed=5)
    path = tmp_path / "run"
    for limit in range(1, 10):
        part = solve(problem(), SGD(), tol=1e-12, max_iter=limit, seed=5, checkpoint=Checkpoint(path, resume=True))
    assert part.w.tobytes() == whole.w.tobytes()


def interrupt_after(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.skipif(os.name == "nt", reason="signals are different there")
def test_ctrl_c_waits_for_the_step_and_writes(tmp_path):
    path = tmp_path / "run"
    whole = solve(problem(), "bmrm", tol=1e-9)
    steps = []

    def press(record):
        steps.append(record.iteration)
        if record.iteration == 4:
            os.kill(os.getpid(), signal.SIGINT)

    part = solve(problem(), "bmrm", tol=1e-9, monitor=press, checkpoint=Checkpoint(path, seconds=1e9))
    assert (part.status, steps[-1]) == (Status.INTERRUPTED, 4)
    assert part.certificate.lower <= part.certificate.upper < np.inf
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    rest = resumed(path, problem())
    assert rest.w.tobytes() == whole.w.tobytes()
    assert [record.upper for record in rest.history] == [record.upper for record in whole.history]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="signals are different there")
def test_a_long_step_can_be_interrupted_by_a_later_ctrl_c(tmp_path):
    class Slow(Solver, name="slow"):
        def steps(self, problem, start):
            for number, step in enumerate(BMRM().steps(problem, start)):
                yield step
                if number == 1:
                    threading.Event().wait(20.0)

    path = tmp_path / "run"
    try:
        timers = [interrupt_after(0.3), interrupt_after(1.8)]
        part = solve(problem(), Slow(), tol=1e-9, checkpoint=Checkpoint(path, seconds=0.0))
        assert (part.status, part.iterations) == (Status.INTERRUPTED, 2)
        assert all(timer.join() is None for timer in timers)
        assert path.exists()  # that of the step before
    finally:
        SOLVERS.pop("slow")
