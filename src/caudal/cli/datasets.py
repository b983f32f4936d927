"""Commands of datasets: `caudal load`, `versions`, `compact`, `vacuum`, `watch`."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Annotated

import typer
from rich.console import Console

from caudal.application import find_application
from caudal.cli import going_on
from caudal.cli.changes_show import changes_line, print_changes
from caudal.cli.consoles import output_console
from caudal.cli.datasets_show import print_load, print_part, spooled_input, versions_table
from caudal.cli.formats import Format
from caudal.cli.gateways import (
    CaOption,
    ClusterOptions,
    GatewayOption,
    GatewayOptions,
    PatienceOption,
    TokenFileOption,
)
from caudal.cli.options import (
    ON_SPARK,
    AppArgument,
    DatasetOption,
    FromOption,
    ParamOption,
    QueryOptions,
    file_overrides,
    parameter_values,
    spread,
    with_asking,
)
from caudal.cli.output import reject_file, require_all
from caudal.cli.progress import watch as watch_progress
from caudal.datasets.compaction import TARGET_BYTES
from caudal.datasets.compaction import compact as compact_files
from caudal.datasets.contents import Contents
from caudal.datasets.shelf import open_shelf, place_to_load
from caudal.datasets.stream_loader import NAME, Descriptor, StreamLoader
from caudal.datasets.vacuum import vacuum as vacuum_files
from caudal.embedded.dataset_ask import ask
from caudal.embedded.dataset_load import DatasetLoader, open_loader
from caudal.embedded.dataset_sources import Source, file_source, file_sources
from caudal.embedded.dataset_stream import EmbeddedTarget
from caudal.embedded.dataset_watch import versions_of
from caudal.errors import UsageError
from caudal.formats.loads import UpkeepRequest
from caudal.model import Application
from caudal.results.answers import Result
from caudal.sizes import parse_bytes, parse_seconds, told_bytes

PlaceArgument = Annotated[
    str, typer.Argument(metavar="DATASET", help="The dataset: a folder or s3://bucket/prefix.")
]
_STREAM = "-"
_LEAST_TARGET = 1 << 16  # bytes of a compacted file
_NOT_FOR_LOADS = ("form", "out", "engine", "partitions", "profile", *ON_SPARK)


def _load(
    app: AppArgument,
    asking: QueryOptions,
    cluster: ClusterOptions,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The dataset: a folder or s3://bucket/prefix; made if new."),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="NAME", help="A dataset of a cluster; made if new."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option("--every", help="A version every so often (10s) while rows stream in."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Load all of a file that has changed since.")
    ] = False,
) -> None:
    """Load files into a dataset: clean them once, ask them many times.

    A load becomes one version, whole or not at all. A file that was loaded before is skipped. The
    same command goes on with a load that was killed.

    Examples:

    - `caudal load books --data data --to shelf`
    - `caudal load books --file reviews=november.csv --to shelf`
    - `caudal load books --data data --gateway http://one:8421 --dataset shelf`
    - `producer | caudal load books --file reviews=- --every 10s --to shelf`
    - `caudal run books --from shelf`
    """
    application = find_application(app)
    stream = _streamed_table(application, asking, every)
    if dataset is not None:
        if to is not None:
            raise UsageError("--to and --dataset are two places: leave one of them out")
        from caudal.cli.cluster_datasets import load_on_cluster

        load_on_cluster(
            application, asking, dataset, cluster, again=again, stream=stream, every=every
        )
        return
    if to is None or cluster.gateway is not None:
        raise UsageError("say where to: --to PLACE, or --gateway URL and --dataset NAME")
    console = Console(stderr=True)
    with reject_file(asking.rejects) as sink, watch_progress(console) as progress:
        options = asking.run_options(sink)
        how = going_on.of_stream if every else partial(going_on.of_local_load, to)

        @contextmanager
        def opened() -> Iterator[DatasetLoader]:
            with (
                place_to_load(to) as store,
                open_loader(application, to, store, options, progress) as loader,
            ):
                yield loader

        with going_on.telling(how):
            if stream is not None and every is not None:
                with opened() as loader:
                    target = EmbeddedTarget(loader)
                    loading = StreamLoader(target, stream, parse_seconds(every), print_part)
                    loading.load(Descriptor(sys.stdin.fileno()))
                    return
            # The files come first: if one is not there, no place is made.
            with _sources(application, asking, stream) as sources, opened() as loader:
                report = loader.load(sources, again=again)
    print_load(to, report, Console(stderr=True, width=None if sys.stderr.isatty() else 160))


load = spread(with_asking(_load, without=_NOT_FOR_LOADS), "cluster", ClusterOptions)


def _versions(
    dataset: PlaceArgument,
    cluster: ClusterOptions,
    last: Annotated[
        int | None, typer.Option("--last", "-n", min=1, help="Only the newest versions.")
    ] = None,
) -> None:
    """List the versions of a dataset: when, rows, files, bytes, rejected rows.

    Examples:

    - `caudal versions shelf`
    - `caudal versions s3://bucket/shelf --last 10`
    - `caudal versions shelf --gateway http://one:8421`
    """
    if cluster.gateway is not None:
        from caudal.cli.cluster_datasets import versions_on_cluster

        output_console().print(versions_on_cluster(dataset, last, cluster))
        return
    contents = open_shelf(dataset).contents
    history = contents.history[-last:] if last else contents.history
    output_console().print(versions_table(history))


versions = spread(_versions, "cluster", ClusterOptions)


def _compact(
    dataset: PlaceArgument,
    cluster: ClusterOptions,
    size: Annotated[
        str | None, typer.Option("--size", help="About how large files become: 64MiB.")
    ] = None,
) -> None:
    """Merge the small files of a dataset into large ones. Rows and answers stay the same.

    Examples:

    - `caudal compact shelf`
    - `caudal compact shelf --size 256MiB`
    - `caudal compact shelf --gateway http://one:8421`
    """
    target = parse_bytes(size) if size else TARGET_BYTES
    if target < _LEAST_TARGET:
        raise UsageError(f"--size {size} is {target:,} bytes, too little for a file: try 64MiB")
    if cluster.gateway is not None:
        from caudal.cli.cluster_datasets import upkeep_on_cluster

        done = upkeep_on_cluster(UpkeepRequest(dataset, compact_bytes=target), cluster)
        _tell_merged(dataset, done.before, done.after, done.version)
        return
    shelf = open_shelf(dataset)
    before = _count_files(shelf.contents)
    after = compact_files(shelf.store, time.time(), target)
    _tell_merged(dataset, before, _count_files(after), after.number)


compact = spread(_compact, "cluster", ClusterOptions)


def _tell_merged(dataset: str, before: int, after: int, version: int) -> None:
    if after == before:
        typer.echo(f"{dataset}: nothing to merge in {before:,} files")
    else:
        typer.echo(f"{dataset}: version {version}: {before:,} files became {after:,}")


def _vacuum(
    dataset: PlaceArgument,
    cluster: ClusterOptions,
    keep: Annotated[
        str, typer.Option("--keep", help="Keep the versions of this time readable: 30d.")
    ] = "30d",
    grace: Annotated[
        str,
        typer.Option("--grace", help="Spare files that a load or a reader may use for so long."),
    ] = "1h",
) -> None:
    """Delete files that no kept version needs: merged ones, and those of killed loads.

    Examples:

    - `caudal vacuum shelf`
    - `caudal vacuum shelf --keep 7d`
    - `caudal vacuum shelf --gateway http://one:8421`
    """
    kept, spared = parse_seconds(keep), parse_seconds(grace)
    if cluster.gateway is not None:
        from caudal.cli.cluster_datasets import upkeep_on_cluster

        request = UpkeepRequest(dataset, keep_seconds=kept, grace_seconds=spared)
        done = upkeep_on_cluster(request, cluster)
        _tell_deleted(dataset, done.deleted, done.bytes, done.version)
        return
    report = vacuum_files(open_shelf(dataset).store, time.time(), kept, spared)
    _tell_deleted(dataset, report.files, report.bytes, report.contents.number)


vacuum = spread(_vacuum, "cluster", ClusterOptions)


def _tell_deleted(dataset: str, files: int, size: int, version: int) -> None:
    if not files:
        typer.echo(f"{dataset}: nothing to delete")
        return
    typer.echo(f"{dataset}: version {version}: deleted {files:,} files, {told_bytes(size)}")


def _watch(
    app: AppArgument,
    query: Annotated[str, typer.Argument(help="The name of a query.")],
    asking: QueryOptions,
    source: FromOption = None,
    dataset: DatasetOption = None,
    gateway: GatewayOption = None,
    token_file: TokenFileOption = None,
    patience: PatienceOption = 60.0,
    ca: CaOption = None,
    param: ParamOption = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="End after so many answers.")
    ] = None,
) -> None:
    """Answer a query again whenever a dataset has a new version; changed rows are marked.

    With `--format json`, each answer is one line: the version, its rows, the places of added rows
    and the rows that are gone.

    Examples:

    - `caudal watch books q4 --from shelf`
    - `caudal watch books q4 --gateway http://one:8421 --dataset shelf`
    - `caudal watch books q4 --from shelf --format json | while read -r answer; do …; done`
    """
    application = find_application(app)
    if asking.form not in (None, Format.TABLE, Format.JSON):
        raise UsageError(f"watch shows answers as a table or as JSON, not as {asking.form.value}")
    values = parameter_values(application.parameters, param)
    if dataset is not None:
        if source is not None:
            raise UsageError("--from and --dataset are two datasets: leave one of them out")
        from caudal import extras

        extras.require("cluster", "caudal watch --dataset")
        from caudal.cli.cluster_questions import cluster_question, watch_question

        asked = cluster_question(application, dataset, asking, queries=(query,), parameters=values)
        watch_question(asked, asking, GatewayOptions(gateway, token_file, patience, ca), count)
        return
    if source is None:
        raise UsageError("name the dataset: --from DATASET, or --gateway URL --dataset NAME")
    console = Console(width=None if sys.stdout.isatty() else 160)
    old: Result | None = None
    for shelf in islice(versions_of(open_shelf(source)), count):
        answers = ask(application, shelf, [query], values, asking.run_options(None))
        require_all(answers.failures)
        result = answers[query]
        if asking.form is Format.JSON:
            sys.stdout.buffer.write(changes_line(shelf.contents.number, old, result))
            sys.stdout.flush()
        else:
            version = shelf.contents.number, shelf.contents.time
            print_changes(version, old, result, console)
        old = result


watch = with_asking(
    _watch,
    without=("data", "file", "out", "rejects", "strict", "engine", "partitions", "batch_size",
             "profile", *ON_SPARK),
)  # fmt: skip


def _streamed_table(app: Application, asking: QueryOptions, every: str | None) -> str | None:
    """Return the table that standard input is for; None if all sources are files."""
    given = file_overrides(app, asking.file)
    streamed = [table for table, paths in given.items() if _STREAM in paths]
    if every is not None and not streamed:
        raise UsageError("--every is for rows that stream in: add --file TABLE=-")
    if streamed and (len(given) > 1 or given[streamed[0]] != [_STREAM] or asking.data):
        raise UsageError("load standard input alone: one --file TABLE=- and no --data")
    return streamed[0] if streamed else None


@contextmanager
def _sources(app: Application, asking: QueryOptions, stream: str | None) -> Iterator[list[Source]]:
    """Yield the sources of a load. Without --data, only the tables of --file are loaded."""
    if stream is not None:
        with spooled_input() as path:
            yield [file_source(stream, path, NAME)]
        return
    given = file_overrides(app, asking.file)
    tables = [table for table in app.tables if not given or asking.data or table.name in given]
    yield file_sources(asking.sources(app), tables)


def _count_files(contents: Contents) -> int:
    return sum(map(len, contents.tables.values()))
