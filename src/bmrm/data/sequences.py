"""Files of sequences: columns (CoNLL), attributes (CRFsuite), and rows with a number for their sequence (svmlight)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from bmrm._errors import DataError
from bmrm.data.dataset import Dataset
from bmrm.data.files import ReadOptions, read
from bmrm.data.svmlight import PathLike
from bmrm.data.template import Template, Templated
from bmrm.data.text import inner_suffix, read_lines
from bmrm.structured.sequences import Sequences

Kind: TypeAlias = Literal["conll", "crfsuite", "svmlight"]

KINDS: tuple[Kind, ...] = ("conll", "crfsuite", "svmlight")
_OF_SUFFIX: dict[str, Kind] = {
    ".conll": "conll",
    ".crfsuite": "crfsuite",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".npz": "svmlight",
}
_BETWEEN = re.compile(r"[ \t]+")
_ESCAPED = re.compile(r"\\(.)")
_FIELD = re.compile(r"((?:[^\\:]|\\.)*)(?::(.*))?")
_DOCUMENT = "-DOCSTART-"
_OUTSIDE = "O"


@dataclass(frozen=True, eq=False)
class SequenceData:
    """The sequences of one file.

    Parameters
    ----------
    X : list of sequences, or Sequences
        Attributes of tokens, as `SequenceLabeler` takes them.
    y : list of lists of labels, or None
        None where the file has no labels.
    kind : {"conll", "crfsuite", "svmlight"}
    lines : list of str, optional
        Of a file of columns: all its lines.
    n_columns : int, optional
        Of a file of columns: how many there are beside the label.
    zero_based : bool, optional
        Of svmlight text: whether indices count from 0.
    """

    X: Any
    y: list[list[Any]] | None
    kind: Kind
    lines: list[str] | None = None
    n_columns: int | None = None
    zero_based: bool | None = None

    def __len__(self) -> int:
        return len(self.X)

    def with_labels(self, labels: Sequence[Sequence[Any]]) -> list[str]:
        """Return lines for other labels: columns with one more, else a label on each line and a blank one between."""
        if self.lines is None:
            return [line for sequence in labels for line in [*map(str, sequence), ""]][:-1]
        found = iter([label for sequence in labels for label in sequence])
        return [_with_column(line, found) for line in self.lines]


def _with_column(line: str, labels: Any) -> str:
    if _is_end(line) and not line.startswith(_DOCUMENT):
        return line
    label = _OUTSIDE if line.startswith(_DOCUMENT) else next(labels)
    return f"{line}{chr(9) if chr(9) in line else ' '}{label}"


def kind_of(path: Path, given: str | None = None) -> Kind:
    """Return the format of a file of sequences: the one that is given, else that of the suffix."""
    for kind in KINDS:
        if given == kind:
            return kind
    if given is not None:
        raise ValueError(f"format {given!r}; expected one of {', '.join(KINDS)}")
    suffix = inner_suffix(path)
    if suffix not in _OF_SUFFIX:
        raise DataError(
            f"{path}: its name does not tell the format of its sequences; expected a suffix {', '.join(_OF_SUFFIX)}, "
            f"or the format itself: {', '.join(KINDS)}"
        )
    return _OF_SUFFIX[suffix]


def read_sequences(
    path: PathLike,
    kind: str | None = None,
    *,
    template: Template | PathLike | None = None,
    n_columns: int | None = None,
    labels: bool = True,
    **options: Any,
) -> SequenceData:
    r"""Read a file of sequences: its name says how, or `kind` does.

    A file of columns (``.conll``) has a token on each line, columns separated by blanks or tabs, the label last; a
    template makes attributes of them. A file of attributes (``.crfsuite``) has a label on each line, then attributes
    ``name`` or ``name:value``, all separated by tabs, ``\:`` and ``\\`` standing for themselves. In both a blank line
    ends a sequence. In svmlight text (``.svm``), and in ``.npz`` with groups, the rows of a sequence stand together
    and have the same qid.

    Parameters
    ----------
    path : str or path-like
        The file; it may be compressed (.gz, .bz2, .xz, .zst).
    kind : {"conll", "crfsuite", "svmlight"}, optional
        By default what the suffix says.
    template : Template, str or path-like, optional
        For files of columns, which need one.
    n_columns : int, optional
        For files of columns: how many there are beside the label; a file with no more than that has no labels.
    labels : bool
        Whether each token must have a label.
    **options
        For svmlight text, as in :func:`bmrm.read`.

    Returns
    -------
    SequenceData

    Raises
    ------
    DataError
        If the file cannot be read; the message says where and what was expected.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bmrm.data import read_sequences
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.crfsuite"
    >>> _ = path.write_text("DT\tword=the\tlength:3\nNN\tword=cat\n\nNN\tword=dogs\n")
    >>> data = read_sequences(path)
    >>> data.y, data.X[0]
    ([['DT', 'NN'], ['NN']], [{'word=the': 1.0, 'length': 3.0}, ['word=cat']])
    """
    file = Path(path)
    chosen = kind_of(file, kind)
    if template is not None and chosen != "conll":
        raise DataError(f"{path}: a template is for files of columns, not for {chosen}")
    if options and chosen != "svmlight":
        raise TypeError(f"{sorted(options)} are options of svmlight text; {path} is a {chosen} file")
    if chosen == "svmlight":
        return _of_rows(file, read(path, **_read_options(options)), labels)
    lines = read_lines(file)
    if chosen == "crfsuite":
        return _of_attributes(file, lines, labels)
    if template is None:
        raise DataError(f"{path}: a file of columns needs a feature template, with lines such as U00:%x[0,0]")
    made = template if isinstance(template, Template) else Template.read(Path(template))
    return _of_columns(file, lines, made, n_columns, labels)


def _read_options(options: dict[str, Any]) -> ReadOptions:
    given: ReadOptions = {**options}  # type: ignore[typeddict-item]
    return given


def _is_end(line: str) -> bool:
    """Whether a line stands between sequences."""
    return not line or line.isspace() or line.startswith(_DOCUMENT)


def _blocks(path: Path, lines: list[str]) -> list[list[tuple[int, str]]]:
    """Return the numbered lines of each sequence."""
    blocks = [list(block) for end, block in groupby(enumerate(lines, 1), lambda pair: _is_end(pair[1])) if not end]
    if not blocks:
        raise DataError(f"{path}: has no sequences")
    return blocks


def _of_columns(path: Path, lines: list[str], template: Template, n_columns: int | None, labels: bool) -> SequenceData:
    sequences = []
    width = 0
    for block in _blocks(path, lines):
        rows = []
        for number, line in block:
            row = _BETWEEN.split(line.strip(" \t"))
            if not width:
                width, first = len(row), number
            if len(row) != width:
                raise DataError(
                    f"{path}, line {number}: {len(row)} columns; expected {width}, as many as line {first} has"
                )
            rows.append(row)
        sequences.append(rows)
    beside = width - 1 if n_columns is None else n_columns
    if width not in (beside, beside + 1) or (labels and width != beside + 1) or beside == 0:
        wanted = f"{beside} and the label" if n_columns is not None else "at least one and the label, which comes last"
        raise DataError(f"{path}, line {first}: the number of columns is {width}; expected {wanted}")
    template.check_columns(beside, path)
    y = [[row.pop() for row in rows] for rows in sequences] if width == beside + 1 else None
    return SequenceData(Templated(template, sequences), y, "conll", lines, beside)


def _of_attributes(path: Path, lines: list[str], labels: bool) -> SequenceData:
    X, y = [], []
    complete = True
    for block in _blocks(path, lines):
        tokens, found = [], []
        for number, line in block:
            label, *fields = line.split("\t")
            if not label and labels:
                raise DataError(f"{path}, line {number}: begins with a tab, so the label is missing")
            if label.startswith("@"):
                raise DataError(f"{path}, line {number}: {label!r}: weights of sequences cannot be given in the file")
            complete = complete and bool(label)
            found.append(_ESCAPED.sub(r"\1", label))
            try:
                tokens.append(_token(fields))
            except ValueError as error:
                raise DataError(f"{path}, line {number}: {error}") from None
        X.append(tokens)
        y.append(found)
    return SequenceData(X, y if complete else None, "crfsuite")


def _token(fields: list[str]) -> list[str] | dict[str, float]:
    """Return the attributes of a line: their names, or with values where there are any."""
    if not any(":" in field or "\\" in field for field in fields):
        return [field for field in fields if field]
    token: dict[str, float] = {}
    for field in fields:
        if field:
            name, value = _attribute(field)
            token[name] = token.get(name, 0.0) + value
    return token


def _attribute(field: str) -> tuple[str, float]:
    match = _FIELD.fullmatch(field)
    if match is None:
        raise ValueError(f"attribute {field!r} ends in a single backslash")
    name, text = match[1], match[2]
    if not name:
        raise ValueError(f"attribute {field!r} has no name")
    if not text:
        return _ESCAPED.sub(r"\1", name), 1.0
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(rf"{text!r} in {field!r} is no finite number (a colon that belongs to a name is written \:)")
    return _ESCAPED.sub(r"\1", name), value


def _of_rows(path: Path, data: Dataset, labels: bool) -> SequenceData:
    """Cut the rows of a matrix where the number of the sequence changes."""
    if data.groups is None:
        raise DataError(
            f"{path}: the rows belong to no sequences: expected qid:NUMBER after the label (groups in .npz), or a file "
            f"of columns or attributes"
        )
    if isinstance(data.y, list) or (data.y is not None and data.y.ndim != 1):
        raise DataError(f"{path}: has rows with several labels, or none; expected one each")
    if data.y is None and labels:
        raise DataError(f"{path}: has no labels")
    starts = np.concatenate([[0], np.flatnonzero(np.diff(data.groups)) + 1])
    seen: set[int] = set()
    for start in starts.tolist():
        group = int(data.groups[start])
        if group in seen:
            raise DataError(f"{path}: row {start} has the qid {group} of earlier rows, but other rows stand between")
        seen.add(group)
    offsets = np.append(starts, data.n_examples).astype(np.int64)
    flat = None if data.y is None else [_plain(label) for label in data.y.tolist()]
    ends = offsets.tolist()
    y = None if flat is None else [flat[start:stop] for start, stop in pairwise(ends)]
    tokens: Any = data.X
    try:
        sequences = Sequences(tokens.astype(np.float64), offsets)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    return SequenceData(sequences, y, "svmlight", zero_based=data.zero_based)


def _plain(label: Any) -> Any:
    if isinstance(label, bytes):
        return label.decode()
    return int(label) if isinstance(label, float) and label.is_integer() else label
