"""Two classes are told apart without sorting; the answer is that of the sorted way."""

import numpy as np
import pytest

from bmrm.estimators.labels import against_the_rest, classes_of, two_classes


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, np.uint8])
@pytest.mark.parametrize("labels", [(0, 1), (1, 0), (7, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_are_those_of_the_sorted_way(rng, dtype, labels, weighted):
    y = np.array(labels, dtype=dtype)[rng.integers(0, 2, size=50)]
    y[:2] = labels
    weight = rng.random(50) if weighted else None
    found, expected = two_classes(y, weight), classes_of(y, weight)
    assert found is not None
    assert found[0].dtype == expected[0].dtype
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


def test_truth_values_are_two_classes():
    classes, codes = two_classes(np.array([True, False, True]), None)
    assert classes.tolist() == [False, True]
    assert codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "y",
    [
        np.zeros(4),
        np.array([0, 1, 2]),
        np.array([0.5, 1.0]),
        np.array([0.0, np.nan]),
        np.array([np.nan, 0.0]),
        np.array([0.0, np.inf]),
        np.array(["a", "b"]),
        np.array(["a", "b"], dtype=object),
        np.zeros(0),
    ],
)
def test_everything_else_is_left_to_the_sorted_way(y):
    assert two_classes(y, None) is None


def test_a_class_without_weight_does_not_count():
    y, weight = np.array([0, 1, 1]), np.array([1.0, 0.0, 0.0])
    assert two_classes(y, weight) is None
    with pytest.raises(ValueError, match="one class only"):
        classes_of(y, weight)


@pytest.mark.parametrize("row", [2, 99, 100, 250, 299])
def test_a_third_label_is_found_in_any_block(row, monkeypatch):
    monkeypatch.setattr("bmrm.estimators.labels._BLOCK", 100)
    y = np.arange(300) % 2
    assert two_classes(y, None) is not None
    y[row] = 2
    assert two_classes(y, None) is None


def test_one_class_against_the_rest():
    for y in (np.array([3, 7, 7, 3]), np.array([2, 0, 1, 2])):
        codes = (two_classes(y, None) or classes_of(y, None))[1]
        for k, label in enumerate(np.unique(y)):
            signs = against_the_rest(codes, k)
            assert signs.dtype == np.float64
            assert signs.tolist() == [1.0 if each == label else -1.0 for each in y]
