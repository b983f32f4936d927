"""A stream into a dataset of a cluster: each part is a load of its own."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from caudal.client.batches import Compress
from caudal.client.http import HttpGateways
from caudal.client.load import ClusterLoad, ClusterSource, load
from caudal.datasets.contents import HeldSource
from caudal.datasets.reports import LoadReport
from caudal.datasets.stream_loader import NAME, StreamRows
from caudal.formats import batch as batch_format
from caudal.formats.job import Options
from caudal.formats.loads import LoadSource
from caudal.jobs.upload import Sendable
from caudal.kernels.csv import cut_batches
from caudal.model import Application

Rejected = Callable[[bytes], None]  # takes the rejects report of a part


@dataclass(frozen=True)
class ClusterTarget:
    """See datasets/stream_loader.py: StreamTarget."""

    app: Application
    dataset: str
    gateways: HttpGateways
    options: Options = field(default_factory=Options)
    compress: Compress = Compress.AUTO
    rejected: Rejected = lambda report: None

    def parts(self, table: str) -> Sequence[HeldSource]:
        return [
            HeldSource(one.version, table, NAME, one.bytes, one.digest, one.part)
            for one in self.gateways.parts(self.dataset, table).parts
        ]

    def settle(self) -> None:
        """Do nothing: the gateway did it when it named the parts."""

    def load(self, rows: StreamRows) -> LoadReport:
        source = part_of(rows, self.options.batch_bytes)
        order = ClusterLoad(self.app, self.dataset, [source], self.options, self.compress)
        report, rejects = load(order, self.gateways)
        if rejects is not None:
            self.rejected(rejects)
        return report


def part_of(rows: StreamRows, batch_bytes: int) -> ClusterSource:
    """Return a part of a stream as a source."""
    offered = rows.offered
    source = LoadSource(offered.table, offered.name, offered.bytes, offered.digest, part=rows.part)

    def cut(first: int, place: int, compress: bool) -> Iterator[Sendable]:
        text = io.BytesIO(rows.header + rows.records)
        for one in cut_batches(text, NAME, batch_bytes=batch_bytes):
            yield partial(
                batch_format.encode,
                table=offered.table,
                number=first + one.number,
                file=NAME,
                columns=one.header.names,
                first_line=one.first_line + rows.lines_before,
                offset=one.offset,
                newlines=one.newlines,
                data=one.data.tobytes(),
                compress=compress,
                source=place,
            )

    return ClusterSource(source, cut)
