from __future__ import annotations

import io

import numpy as np
import pytest

import bmrm
from bmrm.monitor import format_progress, progress_monitor, write_history


class Terminal(io.StringIO):
    def isatty(self):
        return True


def record(iteration=1, upper=1.0, lower=0.5):
    return bmrm.Record(iteration=iteration, seconds=0.25, passes=2.5, upper=upper, lower=lower)


def problem():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 10)), np.where(rng.random(200) < 0.5, -1.0, 1.0)
    return bmrm.Problem(bmrm.LinearRisk(X, y, bmrm.losses.Hinge()), "l2", 1e-3)


def test_a_line_has_all_numbers():
    line = format_progress(record(iteration=12))
    for part in ("iteration 12", "0.2 s", "2.5 passes", "objective 1", "bound 0.5", "gap 50%"):
        assert part in line


def test_a_bound_may_be_missing_or_far_away():
    assert "gap unknown | objective 1 | bound none yet" in format_progress(record(lower=-np.inf))
    assert "gap over 1000%" in format_progress(record(lower=-100.0))
    assert "gap 0%" in format_progress(record(upper=0.0, lower=0.0))


def test_files_get_few_lines_and_the_last_one():
    stream = io.StringIO()
    with progress_monitor(stream) as monitor:
        for i in range(1, 1001):
            assert not monitor(record(i))
    lines = stream.getvalue().splitlines()
    assert len(lines) <= 3
    assert "iteration 1000 " in lines[-1]
    assert "\x1b" not in stream.getvalue()


def test_terminals_are_updated_in_place_and_not_too_often():
    stream = Terminal()
    with progress_monitor(stream, label="fold 3 | ") as monitor:
        for i in range(1, 2001):
            monitor(record(i))
    text = stream.getvalue()
    assert "fold 3 | gap 50%" in text
    assert "iteration 2000" in text
    assert 2 <= text.count("iteration") <= 30


def test_quiet_writes_nothing():
    for stream in (Terminal(), io.StringIO()):
        with progress_monitor(stream, quiet=True) as monitor:
            monitor(record())
        assert stream.getvalue() == ""


def test_nothing_to_show():
    stream = Terminal()
    with progress_monitor(stream):
        pass
    assert stream.getvalue() == ""


def test_a_run_is_the_same_when_watched(capsys):
    with progress_monitor() as monitor:
        watched = bmrm.solve(problem(), monitor=monitor)
    plain = bmrm.solve(problem())
    assert np.array_equal(watched.w, plain.w)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "objective" in captured.err


def test_history(tmp_path):
    result = bmrm.solve(problem())
    path = tmp_path / "h.csv"
    write_history(path, result.history)
    rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    assert rows.shape == (result.iterations, 5)
    assert rows[-1, 3] == result.history[-1].upper
    assert np.array_equal(rows[:, 4], [r.lower for r in result.history])
    with pytest.raises(bmrm.DataError, match="cannot be written"):
        write_history(tmp_path / "missing" / "h.csv", result.history)
