"""Reading and writing of data files.

What comes in is a path, or arrays to be written to one.
What goes out is a :class:`~bmrm.data.dataset.Dataset`, or a file that is either complete or not there.
It must not know losses, regularizers or solvers: a file means the same whatever is done with it.
"""

from __future__ import annotations

from bmrm.data.dataset import Dataset
from bmrm.data.files import read, write
from bmrm.data.svmlight import read_svmlight, write_svmlight

__all__ = ["Dataset", "read", "read_svmlight", "write", "write_svmlight"]
