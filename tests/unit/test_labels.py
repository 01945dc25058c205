"""Labels of two classes: found without sorting, row by row as those of any number of classes."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm.estimators import labels
from bmrm.estimators.labels import against_the_rest, classes_of, two_classes


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.float32, np.float64, bool])
@pytest.mark.parametrize("first", [0, 1])
def test_two_classes_are_those_of_any_number(dtype, first, rng):
    y = rng.integers(0, 2, size=300)
    y[:2] = first, 1 - first
    y = y.astype(dtype)
    (classes, codes), (expected, places) = two_classes(y, None), classes_of(y, None)
    assert classes.dtype == y.dtype
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, places)
    for k in (0, 1):
        np.testing.assert_array_equal(against_the_rest(codes, k), np.where(places == k, 1.0, -1.0))


@pytest.mark.parametrize("row", [2, 99, 100, 250, 299])
def test_a_third_label_is_found_in_any_block(row, monkeypatch):
    monkeypatch.setattr(labels, "_BLOCK", 100)
    y = np.arange(300) % 2
    assert two_classes(y, None) is not None
    y[row] = 2
    assert two_classes(y, None) is None


def test_a_label_for_another_in_equal_number_is_found():
    assert two_classes(np.array([0, 1, 2, 1]), None) is None
    assert two_classes(np.array([0, 0, 0]), None) is None
    assert two_classes(np.array([0.5, 1.0]), None) is None
    assert two_classes(np.array(["a", "b"]), None) is None
    assert two_classes(np.array([0, 1, 1]), np.array([1.0, 0.0, 0.0])) is None
