"""Ranks of MPI that fail or are killed: the run goes on or ends, and never hangs."""

from __future__ import annotations

import pytest
from mpirun import SCRIPTS, needs_mpi, ranks

pytestmark = needs_mpi

FAULTS = SCRIPTS / "mpi_faults.py"


def test_errors_of_a_rank_are_raised_on_the_first():
    ended = ranks(3, FAULTS, "errors")
    assert "all caught" in ended.out, ended.err
    assert ended.code == 1
    assert ended.err.count("raise noted(") == 1  # told once, with what happened on the rank below it
    assert "does not like this\non the worker:" in ended.err


def test_an_error_of_the_first_rank_ends_all():
    ended = ranks(3, FAULTS, "first")
    assert ended.code == 1
    assert ended.err.count("LookupError: rank 0 has lost its way") == 1
    assert "AssertionError" not in ended.err


def test_a_rank_that_does_not_listen_is_ended():
    ended = ranks(2, FAULTS, "stuck", timeout=60)
    assert ended.code == 1
    assert ended.err.count("LookupError: enough") == 1


@pytest.mark.parametrize("kills", [{1: 9}, {1: 1, 2: 12}], ids=["one of three", "all others"])
def test_survivors_take_over(kills, monkeypatch):
    for rank, number in kills.items():
        monkeypatch.setenv(f"KILL_{rank}", str(number))
    ended = ranks(3, FAULTS, "killed", ulfm=True)
    assert ended.code == 0, ended.err
    assert f"lost {len(kills)} of 3" in ended.out


@pytest.mark.parametrize("how", ["kill", "crash", "vanish"])
def test_without_fault_tolerance_the_run_ends(how):
    ended = ranks(3, FAULTS, "lost", how, timeout=60)
    assert ended.code != 0
    assert "went on" not in ended.out


@pytest.mark.parametrize(
    ("arguments", "ulfm"), [((1,), True), ((1, "started"), False), ((0, "started"), True)], ids=str
)
def test_a_rank_that_fails_before_the_start(arguments, ulfm):
    ended = ranks(3, FAULTS, "start", *arguments, ulfm=ulfm, timeout=60)
    assert ended.code != 0
    assert "this rank has no such module" in ended.err
