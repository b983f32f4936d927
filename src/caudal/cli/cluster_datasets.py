"""Datasets of a cluster: `caudal datasets`, and `load`, `versions`, `compact`, `vacuum` there."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.table import Table

from caudal.cli import going_on
from caudal.cli.consoles import message_console, output_console
from caudal.cli.datasets_show import print_load, print_part, spooled_input, versions_table
from caudal.cli.destination import Destination
from caudal.cli.formats import Format
from caudal.cli.gateways import (
    CaOption,
    ClusterOptions,
    GatewayOption,
    GatewayOptions,
    PatienceOption,
    TokenFileOption,
)
from caudal.cli.options import QueryOptions, file_overrides
from caudal.cli.output import reject_file
from caudal.cli.submit_progress import SubmitProgress
from caudal.client.http import HttpGateways
from caudal.client.load import ClusterLoad, ClusterSource, file_of
from caudal.client.load import load as load_files
from caudal.client.load_stream import ClusterTarget
from caudal.client.results import every_reject
from caudal.client.submit import with_sentiment
from caudal.client.upkeep import UpkeepReport, take_care
from caudal.datasets.offered_files import offered_file, offered_files
from caudal.datasets.stream_loader import NAME, Descriptor, StreamLoader
from caudal.errors import UsageError
from caudal.formats.dataset_replies import DatasetEntry
from caudal.formats.job import SENT_BATCH_BYTES, Options
from caudal.formats.loads import LOAD, UpkeepRequest
from caudal.formats.replies import JobStatus
from caudal.model import Application, RejectedRow
from caudal.sizes import parse_seconds, told_bytes

_MOST_VERSIONS = 10_000
_MORE = "others share more with you than is listed; who knows OWNER/NAME of a dataset may use it"


class LoadProgress(SubmitProgress):
    """The display of a load: a bar for each table, and one for the work of the cluster."""

    def __init__(self, gateways: HttpGateways) -> None:
        super().__init__(gateways, Destination(Format.TABLE), preview=False)

        self._unsent: set[str] = set()

    @property
    def is_sent(self) -> bool:
        """Return whether all tables were sent."""
        return bool(self.job_id) and not self._unsent

    def began(self, job_id: str, sizes: Mapping[str, int | None], status: JobStatus) -> None:
        """Show the id of the job."""
        self._unsent = set(sizes)
        super().began(job_id, sizes, msgspec.structs.replace(status, queries=(LOAD,)))

    def ended(self, table: str) -> None:
        """Show that a table is durable."""
        super().ended(table)
        self._unsent.discard(table)

    def answered(self, query: str, result: bytes) -> None:
        """Show that the version is committed."""
        if query == LOAD:
            self._display.answered(query, self.seconds)


def load_on_cluster(
    app: Application,
    asking: QueryOptions,
    dataset: str,
    cluster: ClusterOptions,
    *,
    again: bool,
    stream: str | None,
    every: str | None,
) -> None:
    """Run `caudal load APP --gateway URL --dataset NAME`; `stream` is the table of its input."""
    application, options = with_sentiment(app, asking.sentiment), load_options(asking)
    with cluster.open() as gateways, reject_file(asking.rejects) as sink:
        tell = partial(_tell_rejects, application, sink)
        if stream is not None and every is not None:
            target = ClusterTarget(application, dataset, gateways, options, rejected=tell)
            loading = StreamLoader(target, stream, parse_seconds(every), print_part)
            with going_on.telling(going_on.of_stream):
                loading.load(Descriptor(sys.stdin.fileno()))
            return
        progress, words = LoadProgress(gateways), cluster.words()

        def how() -> str:
            return going_on.of_load(dataset, progress.job_id, is_sent=progress.is_sent, way=words)

        with going_on.telling(how), _sources(application, asking, options, stream) as sources:
            order = ClusterLoad(application, dataset, sources, options, again=again)
            with progress.shown():
                report, rejects = load_files(order, gateways, progress)
        if rejects is not None:
            tell(rejects)
    print_load(dataset, report, message_console())


def _tell_rejects(
    app: Application, sink: Callable[[RejectedRow], None] | None, rejects: bytes
) -> None:
    if sink is not None:
        for row in every_reject(rejects, [table.name for table in app.tables]):
            sink(row)


def load_options(asking: QueryOptions) -> Options:
    return Options(
        batch_bytes=asking.batch_bytes(SENT_BATCH_BYTES),
        strict=asking.strict,
        every_reject=asking.rejects is not None,
    )


@contextmanager
def _sources(
    app: Application, asking: QueryOptions, options: Options, stream: str | None
) -> Iterator[list[ClusterSource]]:
    """Yield the files to load. Without --data, only the tables of --file are loaded."""
    columns = {table.name: table.columns for table in app.tables}
    if stream is not None:
        with spooled_input() as path:
            found = offered_file(stream, path, NAME)
            yield [file_of(found, columns[stream], options.batch_bytes)]
        return
    given = file_overrides(app, asking.file)
    tables = [table for table in app.tables if not given or asking.data or table.name in given]
    yield [
        file_of(one, columns[one.offered.table], options.batch_bytes)
        for one in offered_files(asking.sources(app), tables)
    ]


def versions_on_cluster(place: str, last: int | None, cluster: ClusterOptions) -> Table:
    with cluster.open() as gateways:
        return versions_table(gateways.versions(place, last or _MOST_VERSIONS).versions)


def upkeep_on_cluster(request: UpkeepRequest, cluster: ClusterOptions) -> UpkeepReport:
    with cluster.open() as gateways:
        return take_care(request, gateways)


def datasets(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="`share NAME`, `unshare NAME` (with --reader), `delete NAME`.",
            metavar="[share NAME | unshare NAME | delete NAME]",
        ),
    ] = None,
    reader: Annotated[
        list[str] | None,
        typer.Option("--reader", metavar="TOKEN_NAME", help="Who may read it (repeatable)."),
    ] = None,
    gateway: GatewayOption = None,
    token_file: TokenFileOption = None,
    patience: PatienceOption = 60.0,
    ca: CaOption = None,
) -> None:
    """List the datasets of a cluster that you may read; share, unshare or delete one of yours.

    Examples:

    - `caudal datasets --gateway http://one:8421`
    - `caudal datasets share shelf --reader ben --gateway http://one:8421`
    - `caudal datasets delete shelf --gateway http://one:8421`
    """
    action, *names = words or ["list"]
    if action not in ("list", "share", "unshare", "delete") or (action == "list") == bool(names):
        raise UsageError("write `caudal datasets`, or `share`, `unshare` or `delete` and names")
    if (action in ("share", "unshare")) != bool(reader):
        raise UsageError("--reader TOKEN_NAME is for `share` and `unshare`, which need it")
    with GatewayOptions(gateway, token_file, patience, ca).open() as gateways:
        if action == "list":
            page = gateways.datasets()
            _print_list(page.datasets)
            if page.more:
                typer.echo(f"note: {_MORE}", err=True)
            return
        for name in names:
            typer.echo(_done(gateways, action, name, reader or ()))


def _done(gateways: HttpGateways, action: str, name: str, readers: Sequence[str]) -> str:
    if action == "delete":
        found = gateways.delete_dataset(name)
        return f"{name} is deleted: {found.rows:,} rows, {told_bytes(found.bytes)}"
    for reader in readers:
        found = gateways.share(name, reader, shared=action == "share")
    return f"{name} is read by: {', '.join(found.readers) or 'nobody else'}"


def _print_list(found: Sequence[DatasetEntry]) -> None:
    if not found:
        typer.echo("no datasets", err=True)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("dataset", "owner", "application", "version", "rows", "MB", "readers"):
        is_text = name in ("dataset", "owner", "application", "readers")
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for one in found:
        table.add_row(
            *(one.name, one.owner, one.application, f"{one.version:,}", f"{one.rows:,}"),
            *(f"{one.bytes / 1e6:,.1f}", ", ".join(one.readers)),
        )
    output_console().print(table)
