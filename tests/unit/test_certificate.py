"""What a certificate says of its two ends."""

from __future__ import annotations

import numpy as np
import pytest

import bmrm

INF = np.inf


@pytest.mark.parametrize(
    ("upper", "lower", "expected"),
    [
        (2.0, 1.0, 0.5),
        (0.0, -3.0, 1.0),
        (-1.0, -4.0, 0.75),
        (1.0, -1.0, 2.0),
        (0.0, 0.0, 0.0),
        (1e-320, 0.0, 1.0),
        (INF, 0.0, INF),
        (INF, -INF, INF),
        (1.0, -INF, INF),
        (0.0, -INF, INF),
        (1e308, -1e308, INF),
    ],
)
def test_the_relative_gap_is_a_number_for_all_ends(upper, lower, expected):
    assert bmrm.Certificate.of(upper, lower, "").relative_gap == expected
