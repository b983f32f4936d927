"""A stream into a dataset in a folder or on S3."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from caudal.datasets.commits import settle
from caudal.datasets.contents import HeldSource
from caudal.datasets.reports import LoadReport
from caudal.datasets.stream_loader import NAME, StreamRows
from caudal.datasets.stream_parts import parts_of
from caudal.embedded.dataset_load import DatasetLoader
from caudal.embedded.dataset_sources import Source
from caudal.files.cleaning import Wanted
from caudal.files.pieces import FilePiece, csv_pieces


@dataclass(frozen=True)
class EmbeddedTarget:
    """See datasets/stream_loader.py: StreamTarget."""

    loader: DatasetLoader

    def parts(self, table: str) -> Sequence[HeldSource]:
        return parts_of(self.loader.contents(), table)

    def settle(self) -> None:
        settle(self.loader.tools.store, self.loader.contents())

    def load(self, rows: StreamRows) -> LoadReport:
        return self.loader.load([_source(rows)])


def _source(rows: StreamRows) -> Source:
    size = len(rows.records)

    def cut(wanted: Wanted, batch_bytes: int) -> Iterator[FilePiece]:
        text = io.BytesIO(rows.header + rows.records)
        return csv_pieces(text, NAME, wanted, batch_bytes, lambda: min(text.tell(), size))

    return Source(rows.offered, cut, rows.part, rows.lines_before)
