"""Load local files into a dataset of a cluster: the batches are sent, workers clean them.

Steps
1. Every source is offered with the digest of its content. A gateway says which are new, and the id
   of the job that loads them, which is derived from them (jobs/load_requests.py).
2. The job is created and its batches are sent, as those of any job. If it exists, an earlier
   attempt was killed: what has arrived is not sent again. If it has ended without a version, it is
   deleted first.
3. The result of the job says which version has the rows.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from caudal.client import upload_threads
from caudal.client.batches import Compress
from caudal.client.http import HttpGateways
from caudal.client.results import error_of_outcome, rejects_of, result_of
from caudal.client.stalled import Noticing
from caudal.client.submit import Watching
from caudal.datasets.offered_files import OfferedFile
from caudal.datasets.offered_rows import NAME, OfferedRows, stream_of
from caudal.datasets.reports import LoadReport
from caudal.datasets.sources import Skipped
from caudal.errors import CaudalError, DataError, UsageError
from caudal.files.batches import Packing, cut_unpacked
from caudal.formats import batch as batch_format
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import REJECTS
from caudal.formats.loads import LOAD, LoadOffer, LoadRequest, LoadSource
from caudal.formats.outcomes import Outcome
from caudal.jobs.interfaces import ConflictError, GoneError
from caudal.jobs.loads import VACUUMED, offered
from caudal.jobs.upload import Sendable, UploadRequest
from caudal.model import Application
from caudal.process.clock import new_id
from caudal.results.rejects import Rejects

_ATTEMPTS = 3  # at most so many vacuums may delete files of one load

# The number of the first batch, the place of the source, and whether to compress.
Cut = Callable[[int, int, bool], Iterator[Sendable]]


@dataclass(frozen=True)
class ClusterSource:
    """A source of a load with the way to cut it into batches."""

    source: LoadSource
    cut: Cut = field(repr=False)


@dataclass(frozen=True)
class ClusterLoad:
    """What to load into which dataset."""

    app: Application
    dataset: str
    sources: Sequence[ClusterSource]
    options: Options = field(default_factory=Options)
    compress: Compress = Compress.AUTO
    again: bool = False

    def request(self, sources: Sequence[ClusterSource]) -> Request:
        named = tuple(one.source for one in sources)
        load = LoadRequest(self.dataset, named, self.again)
        return Request(Text.for_load(self.app), options=self.options, load=load)


def file_of(found: OfferedFile, columns: Sequence[str], batch_bytes: int) -> ClusterSource:
    """Return a file as a source. If it changes while it is sent, the load fails."""
    source = found.offered
    named = LoadSource(source.table, source.name, source.bytes, source.digest, source.shown)

    def cut(first: int, place: int, compress: bool) -> Iterator[Sendable]:
        yield from cut_unpacked(
            source.table,
            [found.file],
            batch_bytes,
            columns=columns,
            packing=Packing.ALL if compress else Packing.UNLESS_PLAIN,
            first=first,
            source=place,
        )
        found.require_unchanged()

    return ClusterSource(named, cut)


def rows_of(found: OfferedRows, columns: Sequence[str], batch_bytes: int) -> ClusterSource:
    """Return rows of a program as a source."""
    source = found.offered
    named = LoadSource(
        source.table, source.name, source.bytes, source.digest, source.shown, content=source.content
    )

    def cut(first: int, place: int, compress: bool) -> Iterator[Sendable]:
        for number, (row, part) in enumerate(found.pieces(columns, batch_bytes), first):
            yield partial(_typed_batch, source.table, number, row, part, place, compress=compress)

    return ClusterSource(named, cut)


def _typed_batch(
    table: str, number: int, row: int, part: pa.Table, place: int, *, compress: bool
) -> bytes:
    return batch_format.encode(
        table=table,
        number=number,
        file=NAME,
        columns=tuple(part.column_names),
        first_line=row,
        offset=row - 1,
        newlines=0,
        data=memoryview(stream_of(part)),
        records="arrow",
        compress=compress,
        source=place,
    )


def load(
    order: ClusterLoad, gateways: HttpGateways, watching: Watching | None = None
) -> tuple[LoadReport, bytes | None]:
    """Load what is new; return what was done, and the rejects report of the job if there was one.

    A load whose files a vacuum deleted meanwhile is begun again.
    """
    for _ in range(_ATTEMPTS):
        done = _load(order, gateways, watching)
        if done is not None:
            return done
    raise DataError("vacuums delete files of this load again and again: try again later")


def _load(
    order: ClusterLoad, gateways: HttpGateways, watching: Watching | None
) -> tuple[LoadReport, bytes | None] | None:
    began = time.perf_counter()
    gateways.begin_at(new_id())
    offer = gateways.offer(order.dataset, order.request(order.sources))
    skipped = tuple(Skipped(offered(one.source), one.reason) for one in offer.skipped)
    if not offer.new:
        return LoadReport(offer.version or 0, None, 0, Rejects(), skipped, 0.0), None
    new = _chosen(order, offer)
    outcome, results = _carry_out(order, offer.job, new, gateways, watching)
    if outcome.state != "done":
        if outcome.reason == VACUUMED:
            return None
        raise error_of_outcome(offer.job, outcome)
    seconds = time.perf_counter() - began
    return _report(new, results, skipped, seconds), results[REJECTS]


def _carry_out(
    order: ClusterLoad,
    job_id: str,
    new: Sequence[ClusterSource],
    gateways: HttpGateways,
    watching: Watching | None,
) -> tuple[Outcome, dict[str, bytes]]:
    """Send the new sources, and wait for the commit."""
    gateways.begin_at(job_id)
    batches = _SourceBatches(new, order.compress.pays(gateways.addresses))
    upload = UploadRequest(job_id, order.request(new), batches, settled=batches)
    resume = _is_under_way(gateways, job_id)
    listener = watching or Noticing(gateways.tell)
    with upload_threads.opened(gateways, upload, listener, resume=resume) as errand:
        try:
            if watching is not None:
                watching.began(job_id, batches.sizes(), errand.look())
            return upload_threads.carry_out(errand, gateways), errand.results
        except (DataError, UsageError):
            with gateways.again() as others, contextlib.suppress(CaudalError):
                others.cancel(job_id)  # this load will never be accepted
            raise


def _is_under_way(gateways: HttpGateways, job_id: str) -> bool:
    """Return whether the job exists. One that has ended without success is deleted."""
    try:
        outcome = gateways.status(job_id).outcome
        if outcome is None or outcome.state == "done":
            return True
        gateways.delete(job_id)
    except GoneError:
        pass
    except ConflictError:  # somebody else has deleted it, and begun it anew
        return True
    return False


def _chosen(order: ClusterLoad, offer: LoadOffer) -> list[ClusterSource]:
    if any(not 0 <= place < len(order.sources) for place in offer.new):
        raise UsageError("a gateway asks for a source that was not offered")
    return [order.sources[place] for place in offer.new]


def _report(
    sources: Sequence[ClusterSource],
    results: Mapping[str, bytes],
    skipped: tuple[Skipped, ...],
    seconds: float,
) -> LoadReport:
    rows = result_of(LOAD, results[LOAD]).rows()
    mine = [row for row in rows if row["loaded"]]
    late = tuple(
        Skipped(offered(one.source), f"version {row['version']} loaded it")
        for one, row in zip(sources, rows, strict=True)
        if not row["loaded"]
    )
    return LoadReport(
        max(row["version"] for row in rows),
        mine[0]["version"] if mine else None,
        sum(row["rows"] for row in mine),
        rejects_of(results[REJECTS]),
        (*skipped, *late),
        seconds,
    )


class _SourceBatches(Mapping[str, Iterator[Sendable]]):
    """The batches of the sources by table, numbered across the sources of a table."""

    def __init__(self, sources: Sequence[ClusterSource], compress: bool) -> None:
        self._sources = sources
        self._compress = compress
        self._tables = list(dict.fromkeys(one.source.table for one in sources))

    def sizes(self) -> dict[str, int | None]:
        return {
            table: sum(one.source.bytes for one in self._sources if one.source.table == table)
            for table in self._tables
        }

    def __getitem__(self, table: str) -> Iterator[Sendable]:
        number = 0
        for place, one in enumerate(self._sources):
            if one.source.table == table:
                for batch in one.cut(number, place, self._compress):
                    yield batch
                    number += 1

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)
