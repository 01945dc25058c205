"""Spans in sequences of labels: where chunks begin and end, and how many of them were found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

_TAG = re.compile(r"([BIESLU])-(.+)", re.DOTALL)
_OUTSIDE = "O"
_SAME = {"L": "E", "U": "S"}  # BILOU calls the last token L and a single one U


class Span(NamedTuple):
    """Tokens from `start` to before `stop`."""

    kind: str
    start: int
    stop: int


@dataclass(frozen=True)
class SpanScore:
    """How many spans there are, how many were predicted, and how many of these are right to both ends and in kind.

    Parameters
    ----------
    true, predicted, right : int

    Examples
    --------
    >>> from bmrm.structured.spans import SpanScore
    >>> SpanScore(true=4, predicted=2, right=1).precision
    0.5
    """

    true: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        """Share of the predicted spans that are right; 0 if there are none."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the true spans that were found; 0 if there are none."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of both."""
        total = self.true + self.predicted
        return 2.0 * self.right / total if total else 0.0


def are_tags(labels: Iterable[Any]) -> bool:
    """Whether all labels are O or B-, I-, E-, S- (L-, U-) with a kind, and not all of them O."""
    found = set(labels)
    return found != {_OUTSIDE} and all(
        isinstance(label, str) and (label == _OUTSIDE or _TAG.fullmatch(label) is not None) for label in found
    )


def spans_of(labels: Sequence[str]) -> list[Span]:
    """Return the spans of one sequence in the schemes BIO (IOB1, IOB2), BIOES and BILOU, by conlleval's rules.

    B and S begin a span; so do I and E after O, after E or S, and after another kind, where a correct sequence would
    not have them. E and S end one, and so does whatever follows and is not its continuation.

    Examples
    --------
    >>> from bmrm.structured.spans import spans_of
    >>> spans_of(["B-NP", "I-NP", "O", "I-VP"])
    [Span(kind='NP', start=0, stop=2), Span(kind='VP', start=3, stop=4)]
    """
    spans: list[Span] = []
    before, kind_before, start = _OUTSIDE, "", 0
    for t, label in enumerate(labels):
        tag, kind = _split(label)
        begins = tag in ("B", "S") or (tag in ("I", "E") and (before in (_OUTSIDE, "E", "S") or kind != kind_before))
        if before != _OUTSIDE and (begins or tag == _OUTSIDE):
            spans.append(Span(kind_before, start, t))
        if begins:
            start = t
        before, kind_before = tag, kind
    if before != _OUTSIDE:
        spans.append(Span(kind_before, start, len(labels)))
    return spans


def _split(label: str) -> tuple[str, str]:
    if label == _OUTSIDE:
        return _OUTSIDE, ""
    found = _TAG.fullmatch(label)
    if found is None:
        raise ValueError(f"label {label!r} is no tag of a span: expected O or a letter of BIESLU, '-' and a kind")
    return _SAME.get(found[1], found[1]), found[2]


def span_scores(
    true: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]
) -> tuple[SpanScore, dict[str, SpanScore]]:
    """Return the scores of all spans together, and of each kind.

    Parameters
    ----------
    true, predicted : iterables of sequences of labels
        Of equal lengths.

    Examples
    --------
    >>> from bmrm.structured.spans import span_scores
    >>> total, kinds = span_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])
    >>> total.f1, kinds["VP"].f1, kinds["NP"].f1
    (0.5, 1.0, 0.0)
    """
    counts: tuple[Counter[str], Counter[str], Counter[str]] = (Counter(), Counter(), Counter())
    for ours, theirs in zip(true, predicted, strict=True):
        if len(ours) != len(theirs):
            raise ValueError(f"a sequence has {len(ours)} labels and {len(theirs)} predictions")
        wanted, found = set(spans_of(ours)), set(spans_of(theirs))
        for counter, spans in zip(counts, (wanted, found, wanted & found)):
            counter.update(span.kind for span in spans)
    kinds = sorted(counts[0] | counts[1])
    return (
        SpanScore(*(counter.total() for counter in counts)),
        {kind: SpanScore(*(counter[kind] for counter in counts)) for kind in kinds},
    )
