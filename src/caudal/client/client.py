"""Caudal's cluster from Python: the same answers as `caudal.run`, computed elsewhere.

`import caudal` is fast: a client's modules are loaded by the first call that needs them.
"""

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypedDict, Unpack

from caudal import extras
from caudal.errors import UnreachableError, UsageError
from caudal.formats.job import SENT_BATCH_BYTES
from caudal.model import ParameterValue
from caudal.results.answers import Answers, Result

if TYPE_CHECKING:
    from caudal.client.dataset import RemoteDataset
    from caudal.client.http import HttpGateways
    from caudal.client.job import StreamedJob
    from caudal.client.submit import Submission
    from caudal.datasets.reports import LoadReport
    from caudal.formats.dataset_replies import DatasetEntry, VersionEntry
    from caudal.formats.outcomes import Outcome
    from caudal.formats.replies import JobEntry, JobStatus
    from caudal.sql.literals import SqlValue


class JobOptions(TypedDict, total=False):
    """Options of a job. The first three are those of `caudal.run`."""

    parameters: Mapping[str, ParameterValue] | None
    sentiment: str | None
    strict: bool
    partitions: int
    batch_bytes: int
    silent_seconds: float  # the job expires after this long without a sign of life


class Client:
    """A client of a cluster. `gateway` is one address, several separated by commas, or a list.

        >>> import caudal
        >>> with caudal.Client(example_gateway) as client:
        ...     answers = client.run("movies", data=example_data, queries=["q1", "q2"])
        >>> answers["q2"].to_arrow().column_names
        ['country', 'budget']

    If one gateway does not answer, the next one is asked. If none has answered for
    `patience_seconds`, `caudal.errors.UnreachableError` is raised, and the job can be resumed.
    What a call waits for is a warning of the log `caudal.client.client` after some seconds. A token
    that goes to another machine without https is a UserWarning.
    `ca` is a PEM file with the certificates to trust (or CAUDAL_CA), for addresses with https.
    """

    def __init__(
        self,
        gateway: str | Sequence[str] | None = None,
        token: str | None = None,
        *,
        token_file: str | os.PathLike[str] | None = None,
        patience_seconds: float = 60.0,
        compress: str = "auto",
        ca: str | os.PathLike[str] | None = None,
    ) -> None:
        extras.require("cluster", "caudal.Client")
        from caudal.client.addresses import addresses_of, read_ca, read_token, warning_of
        from caudal.client.batches import Compress
        from caudal.client.connections import Connections, KeptConnections
        from caudal.process.tokens import checked_bearer

        self.addresses = addresses_of(gateway, os.environ)
        given = checked_bearer(token, "token") if token else None
        self._token = given or read_token(token_file, os.environ)
        if line := warning_of(self._token, self.addresses):
            warnings.warn(line, stacklevel=2)
        self._trusted = read_ca(ca, os.environ)
        self._patience_seconds = patience_seconds
        self._connections = KeptConnections(partial(Connections, self.addresses, self._trusted))
        if compress not in set(Compress):
            raise UsageError(f"compress must be one of {', '.join(Compress)}, not {compress!r}")
        self._compress = Compress(compress)

    def __repr__(self) -> str:
        return f"Client({','.join(self.addresses)!r})"

    def run(
        self,
        app: str | os.PathLike[str],
        data: str | os.PathLike[str] = ".",
        queries: Sequence[str] | str | None = None,
        *,
        files: Mapping[str, str | Sequence[str]] | None = None,
        resume: str | None = None,
        **how: Unpack[JobOptions],
    ) -> Answers:
        """Answer queries of an application over the files of a folder, as `caudal.run` does.

        `resume` is the id of a job that was started with the same files. See `JobOptions` for the
        rest.
        """
        return self._answers(
            self._submission(
                app, queries, data=data, files=files, resume=resume, of_files=True, **how
            )
        )

    def sql(
        self,
        query: str,
        app: str | os.PathLike[str],
        data: str | os.PathLike[str] = ".",
        *,
        parameters: "Mapping[str, SqlValue] | None" = None,
        files: Mapping[str, str | Sequence[str]] | None = None,
        sentiment: str | None = None,
    ) -> Result:
        """Answer any SELECT over an application's cleaned tables; see `caudal.sql`.

        >>> import caudal
        >>> client = caudal.Client(example_gateway)
        >>> client.sql("SELECT count(*) AS films FROM movies", "movies", example_data).rows()
        [{'films': 3}]
        """
        from caudal.model import ADHOC

        submission = self._submission(
            app, None, data=data, files=files, sentiment=sentiment,
            select=query, values=parameters, of_files=True,
        )  # fmt: skip
        return self._answers(submission)[ADHOC]

    def job(
        self,
        app: str | os.PathLike[str],
        queries: Sequence[str] | str | None = None,
        **how: Unpack[JobOptions],
    ) -> "StreamedJob":
        """Create a job whose rows this program sends. `how` is as for `run`.

        >>> import caudal
        >>> row = {"Title": "Dune", "authors": ["Frank Herbert"], "publisher": None,
        ...        "publishedDate": "1965", "categories": ["Fiction"]}
        >>> with caudal.Client(example_gateway).job("books", queries=["q1", "q2"],
        ...                                         parameters={"min_decades": 1}) as job:
        ...     job.send("books", [row])
        ...     job.end("books")
        ...     job.results()["q2"].rows()
        [{'author': 'Frank Herbert'}]
        """
        from caudal.client.job import StreamedJob

        return StreamedJob(self._submission(app, queries, **how), self.gateways())

    def dataset(self, name: str, as_of: int | None = None) -> "RemoteDataset":
        """Return a dataset of the cluster: NAME, or OWNER/NAME of another owner."""
        from caudal.client.dataset import RemoteDataset

        return RemoteDataset(self.gateways, name, as_of)

    def jobs(self) -> "list[JobEntry]":
        """Return the jobs of this token that still exist."""
        with self.gateways() as gateways:
            return list(gateways.jobs())

    def status(self, job_id: str) -> "JobStatus":
        """Return the progress of a job."""
        with self.gateways() as gateways:
            return gateways.status(job_id)

    def results(self, job_id: str) -> Answers:
        """Return the answers of a job that is done."""
        from caudal.client.results import answers_of
        from caudal.formats.keys import REJECTS

        with self.gateways() as gateways:
            status = gateways.status(job_id)
            names = (*status.queries, REJECTS)
            results = {name: gateways.result(job_id, name, status.run) for name in names}
        return answers_of(results, status.queries)

    def cancel(self, job_id: str) -> "Outcome":
        """Cancel a job. Return its outcome, which may be an earlier one."""
        with self.gateways() as gateways:
            return gateways.cancel(job_id)

    def load(
        self,
        app: str | os.PathLike[str],
        data: str | os.PathLike[str] | None = None,
        *,
        dataset: str,
        files: Mapping[str, str | Sequence[str]] | None = None,
        again: bool = False,
        **how: Unpack[JobOptions],
    ) -> "LoadReport":
        """Load files into a dataset of the cluster, as `caudal.load` does.

        Repeat a call that was interrupted: what has arrived is not sent again.
        """
        from caudal.client.load import ClusterLoad, file_of, load
        from caudal.datasets.offered_files import offered_files

        given = self._submission(app, None, data=data or ".", files=files, **how)
        options, tables = given.options, given.app.tables
        chosen = [one for one in tables if not files or data or one.name in files]
        columns = {table.name: table.columns for table in tables}
        sources = [
            file_of(one, columns[one.offered.table], options.batch_bytes)
            for one in offered_files(given.sources, chosen)
        ]
        order = ClusterLoad(given.app, dataset, sources, options, self._compress, again)
        with self.gateways() as gateways:
            return load(order, gateways)[0]

    def datasets(self) -> "tuple[DatasetEntry, ...]":
        """Return the datasets of this token's owner, and at most 100 that others share with it."""
        with self.gateways() as gateways:
            return gateways.datasets().datasets

    def versions(self, dataset: str, last: int = 1000) -> "tuple[VersionEntry, ...]":
        """Return the newest versions of a dataset; that of another owner is OWNER/NAME."""
        with self.gateways() as gateways:
            return gateways.versions(dataset, last).versions

    def share(self, dataset: str, reader: str, *, shared: bool = True) -> "DatasetEntry":
        """Let another owner read a dataset; with `shared=False`, no more."""
        with self.gateways() as gateways:
            return gateways.share(dataset, reader, shared=shared)

    def delete_dataset(self, dataset: str) -> "DatasetEntry":
        """Delete a dataset; return what it was."""
        with self.gateways() as gateways:
            return gateways.delete_dataset(dataset)

    def gateways(self) -> "HttpGateways":
        """Return what sends requests; the caller closes it. All share the same connections."""
        from caudal.client.http import HttpGateways
        from caudal.process.logs import log_of

        return HttpGateways(
            self.addresses,
            self._token,
            patience_seconds=self._patience_seconds,
            trusted=self._trusted,
            connections=self._connections.get(),
            tell=partial(log_of(__name__).warning, "%s"),
        )

    def close(self) -> None:
        """Close idle connections. The next call opens new ones, so a client can go on."""
        self._connections.close()

    def _answers(self, submission: "Submission") -> Answers:
        from caudal.client.results import answers_of, error_of_outcome
        from caudal.client.submit import submit

        job_id, began = submission.resume or submission.job_id, time.perf_counter()
        try:
            with self.gateways() as gateways:
                outcome, results = submit(submission, gateways)
        except UnreachableError as error:
            raise UnreachableError(f"{error}; continue with resume={job_id!r}") from None
        assert outcome is not None
        if outcome.state != "done":
            raise error_of_outcome(job_id, outcome)
        return answers_of(results, submission.asked, time.perf_counter() - began)

    def _submission(
        self,
        app: str | os.PathLike[str],
        queries: Sequence[str] | str | None,
        *,
        data: str | os.PathLike[str] = ".",
        files: Mapping[str, str | Sequence[str]] | None = None,
        resume: str | None = None,
        parameters: Mapping[str, ParameterValue] | None = None,
        sentiment: str | None = None,
        strict: bool = False,
        partitions: int | None = None,
        of_files: bool = False,  # all data are these files: choose partitions by their size
        batch_bytes: int = SENT_BATCH_BYTES,
        silent_seconds: float = 600.0,
        select: str | None = None,
        values: "Mapping[str, SqlValue] | None" = None,  # of the parameters of `select`
    ) -> "Submission":
        from caudal.application import find_application
        from caudal.client.batches import PARTITIONS, partitions_for
        from caudal.client.submit import Submission, with_sentiment
        from caudal.files.sources import Sources
        from caudal.formats.job import Options
        from caudal.sql.adhoc import bind_values, with_adhoc_query
        from caudal.sql.literals import checked_value

        application = with_sentiment(find_application(os.fspath(app)), sentiment)
        if select is not None:
            bound = bind_values(select, values or {}, application.parameters)
            application = with_adhoc_query(application, bound)
        overrides = {
            table: [given] if isinstance(given, str) else list(given)
            for table, given in (files or {}).items()
        }
        sources = Sources(Path(data), overrides)
        return Submission(
            app=application,
            sources=sources,
            queries=tuple([queries] if isinstance(queries, str) else queries or ()),
            parameters={
                name: checked_value(name, value, application.parameters.get(name))
                for name, value in (parameters or {}).items()
            },
            options=Options(
                strict=strict,
                partitions=partitions
                or (partitions_for(application.tables, sources) if of_files else PARTITIONS),
                batch_bytes=batch_bytes,
                silent_seconds=silent_seconds,
            ),
            compress=self._compress,
            resume=resume,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
