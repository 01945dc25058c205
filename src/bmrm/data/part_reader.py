"""Parts of files in memory, or as a store that is gone from its folder once it is open."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bmrm._errors import DataError
from bmrm.data.columns import Columns, Names
from bmrm.data.convert import convert
from bmrm.data.dataset import Dataset
from bmrm.data.pieces import Piece, as_dataset
from bmrm.data.source_options import FilePart, Skipped, SourceOptions
from bmrm.data.sources import format_of, pieces_of
from bmrm.data.store import Store
from bmrm.data.text_pieces import IndexZero, whole_text


@dataclass(frozen=True)
class PartReader:
    """Reads parts of files as one set of rows.

    Parameters
    ----------
    zero_based : bool or "auto"
        Of svmlight text; "auto" says yes if an index 0 occurs anywhere.
    target, group, weight : str, optional
        The columns of tables with the labels, queries and weights.
    memory : int or str, optional
        A limit on the resident memory of the process: rows stay on disk.
    skip_bad : bool
        Leave out, and count, what cannot be read.
    n_threads : int, optional
    on_disk : bool
        Keep rows on disk also without a limit.
    features : tuple of str, optional
        The columns that are features, in this order, of files that name their columns.
    drop : tuple of str
        Columns that are no features, where they are there.
    """

    zero_based: bool | str = "auto"
    target: str | None = None
    group: str | None = None
    weight: str | None = None
    memory: int | str | None = None
    skip_bad: bool = False
    n_threads: int | None = None
    on_disk: bool = False
    features: Names | None = None
    drop: Names = ()

    def read(self, parts: Sequence[FilePart]) -> tuple[Dataset, tuple[str, ...]]:
        """Return the rows of all parts, and what is to be said about them."""
        stores = [part for part in parts if format_of(Path(part.path), SourceOptions()) == "store"]
        if stores and len(parts) == 1:
            data, remarks = self._opened(stores[0])
            if self.features in (None, data.feature_names) or data.feature_names is None:
                return data, remarks
        if stores or self.memory is not None or self.on_disk:
            return self._stored(parts)
        try:
            return self._in_memory(parts, self.zero_based)
        except IndexZero:
            if self.zero_based != "auto":
                raise
            return self._in_memory(parts, True)

    def _opened(self, part: FilePart) -> tuple[Dataset, tuple[str, ...]]:
        remarks: list[str] = []
        store = Store(part.path, self.memory, self.skip_bad, (part.start, part.stop), remarks)
        return store.dataset(), tuple(remarks)

    def _stored(self, parts: Sequence[FilePart]) -> tuple[Dataset, tuple[str, ...]]:
        """Convert to a store; open files outlive their names, so nothing is left behind however the process ends."""
        with tempfile.TemporaryDirectory(prefix="bmrm-") as folder:
            path = Path(folder) / "data.store"
            done = convert(
                parts, path, zero_based=self.zero_based, target=self.target, group=self.group,  # type: ignore[arg-type]
                weight=self.weight, features=self.features, drop=self.drop, memory=self.memory, skip_bad=self.skip_bad,
            )  # fmt: skip
            data = Store(path, self.memory).dataset()
        return data, (*([str(done.skipped)] if done.skipped.rows else []), *done.remarks)

    def _in_memory(self, parts: Sequence[FilePart], zero_based: bool | str) -> tuple[Dataset, tuple[str, ...]]:
        pieces: list[Piece] = []
        skipped, found, columns = Skipped(), set[bool](), Columns(self.features, self.drop)
        for part in parts:
            options = SourceOptions(
                zero_based, self.target, self.group, self.weight, skip_bad=self.skip_bad,  # type: ignore[arg-type]
                skipped=skipped, columns=columns,
            )  # fmt: skip
            own = self._pieces(part, options)
            if not part.cut and not sum(piece.rows for piece in own):
                raise DataError(f"{part.path}: no examples; expected at least one row")
            pieces += own
            if isinstance(options.zero_based, bool) and any(piece.columns for piece in own):
                found.add(options.zero_based)
        if zero_based == "auto" and len(found) == 2:  # an index 0 in one of them settles it for all
            return self._in_memory(parts, True)
        data = as_dataset(pieces, found.pop() if found else None)
        return data, (*([str(skipped)] if skipped.rows else []), *columns.remarks())

    def _pieces(self, part: FilePart, options: SourceOptions) -> list[Piece]:
        if format_of(Path(part.path), options) == "svmlight" and not self.skip_bad and self.target is None:
            return [whole_text(part, options, self.n_threads)]
        return list(pieces_of(part, options))
