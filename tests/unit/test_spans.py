"""Spans by conlleval's rules: cases by hand, and against seqeval where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm.structured.spans import Span, SpanScore, are_tags, span_scores, spans_of


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        ("", []),
        ("O O", []),
        ("B-A", [("A", 0, 1)]),
        ("B-A I-A O B-B", [("A", 0, 2), ("B", 3, 4)]),
        ("B-A B-A", [("A", 0, 1), ("A", 1, 2)]),
        ("O I-A I-A", [("A", 1, 3)]),  # ill-formed: begins with I
        ("I-A I-B I-B", [("A", 0, 1), ("B", 1, 3)]),  # ill-formed: the kind changes
        ("B-A I-B", [("A", 0, 1), ("B", 1, 2)]),
        ("B-A I-A E-A", [("A", 0, 3)]),
        ("S-A S-A", [("A", 0, 1), ("A", 1, 2)]),
        ("B-A E-A I-A", [("A", 0, 2), ("A", 2, 3)]),  # ill-formed: goes on after its end
        ("E-A E-A", [("A", 0, 1), ("A", 1, 2)]),
        ("S-A I-A", [("A", 0, 1), ("A", 1, 2)]),
        ("B-A S-A", [("A", 0, 1), ("A", 1, 2)]),
        ("B-A L-A U-B", [("A", 0, 2), ("B", 2, 3)]),
        ("B-x-y I-x-y", [("x-y", 0, 2)]),
    ],
)
def test_by_hand(labels, spans):
    assert spans_of(labels.split()) == [Span(*span) for span in spans]


def test_scores_by_hand():
    true = [["B-A", "I-A", "O", "B-B"], ["B-A"]]
    found = [["B-A", "I-A", "B-B", "I-B"], ["O"]]
    total, kinds = span_scores(true, found)
    assert total == SpanScore(true=3, predicted=2, right=1)
    assert (total.precision, total.recall, total.f1) == (1 / 2, 1 / 3, 2 / 5)
    assert kinds == {"A": SpanScore(2, 1, 1), "B": SpanScore(1, 1, 0)}
    assert kinds["B"].f1 == 0.0
    nothing = SpanScore(0, 0, 0)
    assert (nothing.precision, nothing.recall, nothing.f1) == (0.0, 0.0, 0.0)


def test_what_is_no_tag():
    assert are_tags(["O", "B-A", "S-A"])
    assert not are_tags(["O"])
    assert not are_tags(["O", "NN"])
    assert not are_tags(["O", "B-"])
    assert not are_tags([1, 2])
    with pytest.raises(ValueError, match="label 'NN' is no tag"):
        spans_of(["NN"])
    with pytest.raises(ValueError, match="1 labels and 2 predictions"):
        span_scores([["O"]], [["O", "O"]])


@pytest.mark.parametrize("letters", ["BI", "BIES"])
def test_seqeval_says_the_same(letters):
    metrics = pytest.importorskip("seqeval.metrics", reason="seqeval is missing")
    rng = np.random.default_rng(7)
    tags = ["O", *(f"{letter}-{kind}" for letter in letters for kind in ("A", "B", "C"))]

    def draw():
        return [[str(rng.choice(tags)) for _ in range(n)] for n in lengths]

    for _ in range(50):
        lengths = rng.integers(1, 12, size=6)
        true, found = draw(), draw()
        total, kinds = span_scores(true, found)
        assert total.precision == pytest.approx(metrics.precision_score(true, found, zero_division=0))
        assert total.recall == pytest.approx(metrics.recall_score(true, found, zero_division=0))
        assert total.f1 == pytest.approx(metrics.f1_score(true, found, zero_division=0))
        report = metrics.classification_report(true, found, output_dict=True, zero_division=0)
        for kind, score in kinds.items():
            assert score.f1 == pytest.approx(report[kind]["f1-score"])
            assert score.true == report[kind]["support"]
