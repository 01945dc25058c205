"""Data: files and arrays come in, a `Dataset` or a `Design` goes out; written files are complete or not there.

`read` and `write` choose the format by the file's name; `Design` is the matrix as the risks see it. Nothing here
may know losses, regularizers or solvers: a file means the same whatever is done with it.
"""

from __future__ import annotations

from bmrm.data.convert import Conversion, convert
from bmrm.data.dataset import Dataset
from bmrm.data.files import read, write
from bmrm.data.matrix import Design
from bmrm.data.sequences import SequenceData, read_sequences
from bmrm.data.store import Store
from bmrm.data.svmlight import read_svmlight, write_svmlight

__all__ = [
    "Conversion",
    "Dataset",
    "Design",
    "SequenceData",
    "Store",
    "convert",
    "read",
    "read_sequences",
    "read_svmlight",
    "write",
    "write_svmlight",
]
