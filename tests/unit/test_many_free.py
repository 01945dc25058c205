"""Thousands of free coordinates: the master's program has a row for each, and notices a deadline within its steps."""

import numpy as np
import pytest

from bmrm import _core
from bmrm._deadline import within
from bmrm.bundle.qp import program_with_slacks, with_slacks

ROWS = 1500


def test_starting_the_program_is_cut():
    program, slopes = program_with_slacks(ROWS), np.random.default_rng(0).normal(size=ROWS)
    h = np.zeros(2 * ROWS + 1)
    h[-1] = 1.0
    program.add(h, np.concatenate([[1.0], slopes]))
    with pytest.raises(_core.Overdue), within(0.02):
        program.set_start(with_slacks(np.ones(1), slopes))


def test_making_the_program_is_cut():
    with pytest.raises(_core.Overdue), within(0.02):
        program_with_slacks(ROWS)
