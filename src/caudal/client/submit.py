"""Submission of local files to a cluster: from an application and its files to results."""

import contextlib
import io
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from caudal.client import upload_threads
from caudal.client.batches import STANDARD_INPUT, BatchCutter, Compress, file_sizes
from caudal.client.http import HttpGateways
from caudal.client.stalled import Noticing
from caudal.errors import CaudalError, DataError, UsageError
from caudal.files.sources import Sources
from caudal.formats.job import Options, Request, Text
from caudal.formats.outcomes import Outcome
from caudal.formats.replies import JobStatus
from caudal.jobs.upload import Listener, Sendable, UploadRequest
from caudal.kernels.csv import Stream
from caudal.model import Application, ParameterValue
from caudal.process.clock import new_id


def _standard_input() -> Stream:
    return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))


@dataclass(frozen=True)
class Submission:
    """The files, the queries and the options of a job. `resume` is the id of an earlier job."""

    app: Application
    sources: Sources
    queries: tuple[str, ...] = ()  # empty: all
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    compress: Compress = Compress.AUTO
    resume: str | None = None
    job_id: str = field(default_factory=new_id)
    standard_input: Callable[[], Stream] = _standard_input

    def __post_init__(self) -> None:
        known = [query.name for query in self.app.queries]
        for name in self.queries:
            if name not in known:
                raise UsageError(
                    f"{self.app.name} has no query {name!r}; its queries are: {', '.join(known)}"
                )
        inputs = [table for table, files in self.sources.overrides.items()
                  if STANDARD_INPUT in files]  # fmt: skip
        if len(inputs) > 1:
            raise UsageError(f"only one table can use standard input, not {' and '.join(inputs)}")

    @property
    def asked(self) -> tuple[str, ...]:
        """Return the queries, in order."""
        return self.queries or tuple(query.name for query in self.app.queries)

    def request(self, options: Options) -> Request:
        return Request(Text.of(self.app), self.queries, dict(self.parameters), options)


class Watching(Listener):
    """A listener that is also told which tables will be sent."""

    def began(self, job_id: str, sizes: Mapping[str, int | None], status: JobStatus) -> None:
        """Note that the job exists. `sizes` has the tables to send, in order, with file sizes."""


def submit(
    submission: Submission,
    gateways: HttpGateways,
    watching: Watching | None = None,
    *,
    detach: bool = False,
) -> tuple[Outcome | None, dict[str, bytes]]:
    """Send everything and collect the results; with `detach`, return no outcome."""
    job_id, options = submission.resume or submission.job_id, submission.options
    gateways.begin_at(job_id)
    if submission.resume:
        options = gateways.status(job_id).options
    cutter = BatchCutter(options.batch_bytes, submission.compress.pays(gateways.addresses))
    batches = _Batches(submission, cutter)
    order = UploadRequest(job_id, submission.request(options), batches, batches.settled)
    listener = watching or Noticing(gateways.tell)
    with upload_threads.opened(gateways, order, listener, resume=bool(submission.resume)) as errand:
        try:
            sizes = batches.sizes(errand.tables)
            if watching is not None:
                watching.began(job_id, sizes, errand.look())
            if detach:
                for _ in errand.send():
                    pass
                return None, errand.results
            outcome = upload_threads.carry_out(errand, gateways)
        except (DataError, UsageError):
            if not submission.resume:
                _cancel(gateways, job_id)  # these files will never be accepted
            raise
    return outcome, errand.results


def _cancel(gateways: HttpGateways, job_id: str) -> None:
    """Cancel a job that will not be continued; if that fails, the job expires."""
    with gateways.again() as others, contextlib.suppress(CaudalError):
        others.cancel(job_id)


class _Batches(Mapping[str, "Iterator[Sendable]"]):
    """The batches of the tables that the gateway asks for. Other tables' files need not exist."""

    def __init__(self, submission: Submission, cutter: BatchCutter) -> None:
        self._submission = submission
        self._cutter = cutter
        self._tables = {table.name: table for table in submission.app.tables}

    @property
    def settled(self) -> Collection[str]:
        """Return the tables that are not read from standard input."""
        overrides = self._submission.sources.overrides
        return {one for one in self._tables if STANDARD_INPUT not in overrides.get(one, ())}

    def sizes(self, tables: tuple[str, ...]) -> dict[str, int | None]:
        """Return the file sizes of these tables; all files must exist."""
        wanted = [self._tables[name] for name in tables]
        sizes = file_sizes(wanted, self._submission.sources)
        return {name: sizes.get(name) for name in tables}

    def __getitem__(self, name: str) -> Iterator[Sendable]:
        submission = self._submission
        return self._cutter.table(self._tables[name], submission.sources, submission.standard_input)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def with_sentiment(app: Application, sentiment: str | None) -> Application:
    return replace(app, sentiment=sentiment) if sentiment else app
