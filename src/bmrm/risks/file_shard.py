"""FileShard: makes a shard of parts of files, where it is called."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from bmrm._errors import DataError
from bmrm.data.part_reader import PartReader
from bmrm.data.source_options import FilePart
from bmrm.risks.shard import Shard


@dataclass(frozen=True)
class FileShard:
    """Makes a shard of files, or of parts of them, which are read where the shard is made.

    Parameters
    ----------
    parts : tuple of FilePart, or path
    reader : PartReader
        How to read them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bmrm.risks.file_shard import FileShard
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.svm"
    >>> _ = path.write_text("1 1:0.5\\n-1 2:1\\n")
    >>> FileShard(str(path))().about().rows
    2
    """

    parts: tuple[FilePart, ...] | str | os.PathLike[str]
    reader: PartReader = field(default_factory=PartReader)

    def __call__(self) -> Shard:
        """Read the files."""
        parts = self.parts if isinstance(self.parts, tuple) else (FilePart(os.fspath(self.parts)),)
        name = " ... ".join(dict.fromkeys([str(parts[0]), str(parts[-1])]))
        data, remarks = self.reader.read(parts)
        if data.n_examples == 0:
            raise DataError(f"{name}: no examples")
        return Shard(data, name, self.reader.n_threads, remarks)
