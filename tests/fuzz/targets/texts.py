"""Text: svmlight, CoNLL, CRFsuite and templates."""

from __future__ import annotations

import contextlib
import random
import zlib
from pathlib import Path
from typing import Any

import bmrm
from bmrm.data.template import Template
from bmrm.structured import attributes
from fuzz.target import Target

_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"zero_based": True},
    {"zero_based": False},
    {"n_features": 3},
    {"multilabel": True},
    {"multilabel": False},
    {"dtype": "float32"},
    {"n_threads": 3},
    {"n_features": 2**59},
)


def chosen(data: bytes, choices: tuple[Any, ...]) -> Any:
    """Return one of the choices: for the same data always the same."""
    return choices[zlib.crc32(data) % len(choices)]


class Svmlight(Target):
    """Svmlight text, plain, with different options, and as sequences."""

    name = "svmlight"
    allowed = (bmrm.DataError,)
    words = (b" 1:1", b"qid:1 ", b"# ", b":", b",", b"\n", b"\r\n", b" 9223372036854775807:1", b"nan", b"\xef\xbb\xbf")

    def seeds(self) -> list[bytes]:
        """Return texts of every kind."""
        return [
            b"+1 1:0.5 3:2 # a comment\n-1 2:1e-3\n",
            b"1 qid:1 1:1\n2 qid:1 2:1\n1 qid:2 1:-1\n",
            b"1,2 0:1 4:5.5\n 1:3\n3 2:1\n",
            b"0.5 2147483647:1\n-3 4294967296:1e10",
        ]

    def run(self, data: bytes) -> None:
        """Read, fit where columns are few, and write again."""
        path = Path("in.svm")
        path.write_bytes(data)
        found = bmrm.read(path, **chosen(data, _OPTIONS))
        if chosen(data, (True, False, False)):
            bmrm.read_sequences(path, labels=False)
        if 0 < found.X.shape[1] < 100 and found.y is not None and not isinstance(found.y, list):
            bmrm.solve(bmrm.Problem(bmrm.LinearRisk(found.X, found.y, "absolute_error"), "l2", 1.0), max_iter=2)


class Attributes(Target):
    """Files of CRFsuite."""

    name = "crfsuite"
    allowed = (bmrm.DataError,)
    words = (b"\t", b"\\:", b"\\\\", b"\\", b":", b":1e400", b"\n\n", b"@1", b"\xef\xbb\xbf", b"\x00", b"a:2")

    def seeds(self) -> list[bytes]:
        """Return sequences with and without values."""
        return [
            b"DT\tword=the\tlength:3\nNN\tword=cat\n\nNN\tword=dogs\n",
            b"O\ta\\:b:0.5\tc\nB\td\\\\:1\n",
            b"\ta\n\tb:2\n",
        ]

    def run(self, data: bytes) -> None:
        """Read with labels or without, and number the attributes."""
        path = Path("in.crfsuite")
        path.write_bytes(data)
        found = bmrm.read_sequences(path, labels=chosen(data, (True, False)))
        with contextlib.suppress(ValueError):  # of nothing nothing is learned
            attributes.Attributes.learn(found.X)


class Columns(Target):
    """Files of columns (CoNLL)."""

    name = "conll"
    allowed = (bmrm.DataError,)
    words = (b" ", b"\t", b"\n\n", b"-DOCSTART- O\n", b"\xef\xbb\xbf", b"\x00", b"\r\n", "ä ".encode(), b"\xc2\x85")
    template = Template.parse(["U0:%x[0,0]", "U1:%x[-1,0]/%x[2,0]", "B"])

    def seeds(self) -> list[bytes]:
        """Return sequences of one and of three columns."""
        return [b"the DT O\ncat NN B\n\ndogs NN O\n", b"-DOCSTART- O\n\na\tO\nb\tI\n", b"x y\n"]

    def run(self, data: bytes) -> None:
        """Read, apply the template, and add labels."""
        path = Path("in.conll")
        path.write_bytes(data)
        options: dict[str, Any] = chosen(data, ({}, {"labels": False}, {"n_columns": 1, "labels": False}))
        found = bmrm.read_sequences(path, template=self.template, **options)
        found.with_labels([["L"] * len(tokens) for tokens in found.X])


class Templates(Target):
    """Templates of CRF++."""

    name = "template"
    allowed = (bmrm.DataError,)
    words = (b"%x[", b"%x[0,0]", b"%x[-100,1]", b"%x[1,999999999999]", b"U", b"B", b"#", b"]", b"\n", b"%x[ -1 , 1 ]")

    def seeds(self) -> list[bytes]:
        """Return templates with one and several macros."""
        return [b"U0:%x[0,0]\nU1:%x[-1,1]/%x[0,1]\nB\n", b"# none\n\nU%x[100,0]%x[-100,0]\n"]

    def mutate(self, rng: random.Random, data: bytes, other: bytes) -> bytes:
        """Change the text; a template of many lines is not what is tried here."""
        return super().mutate(rng, data, other)[:4096]

    def run(self, data: bytes) -> None:
        """Parse, and apply to a sequence of two columns."""
        path = Path("template")
        path.write_bytes(data)
        template = Template.read(path)
        template.check_columns(2, "rows")
        template.attributes([["the", "DT"], ["cat", "NN"], ["sat", "VB"]])
