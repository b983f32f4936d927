"""`caudal worker`: what does the work of a cluster. Its options; the rest loads as it starts."""

from pathlib import Path
from typing import Annotated

import typer

from caudal.cli.processes import (
    BrokerOption,
    FsyncOption,
    HeartOption,
    LogFormatOption,
    StoreOption,
)
from caudal.process.heart import alive


def worker(
    store: StoreOption,
    broker: BrokerOption,
    name: Annotated[
        str | None, typer.Option("--name", help="For logs.", show_default="HOST-PID")
    ] = None,
    tasks: Annotated[
        str, typer.Option("--tasks", help="Which kinds of tasks to take.")
    ] = "map,fold,finish,slow",
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Keep it free for short tasks: slow ones come last and make way."
        ),
    ] = False,
    memory_limit: Annotated[
        str, typer.Option("--memory-limit", help="For the process; more spills to disk.")
    ] = "700MB",
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", help="Where to spill.", show_default="the system's TMPDIR"),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            min=0.0,
            help="Seconds to wait for store and broker at the start.",
            show_default="for ever",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            min=0,
            max=65_535,
            help="Serve Prometheus here, without a token on loopback only; 0 takes a free one.",
        ),
    ] = None,
    metrics_token_file: Annotated[
        Path | None,
        typer.Option("--metrics-token-file", help="A file that holds the token of the metrics."),
    ] = None,
    log_format: LogFormatOption = "json",
    fsync: FsyncOption = True,
    heart: HeartOption = None,
) -> None:
    """Do the tasks of all jobs: read batches, fold partitions, finish queries.

    Any number of workers run side by side, on any machines that reach the store and the broker.
    SIGTERM lets it finish or hand back what it holds and leave within ten seconds.
    """
    with alive(heart, "caudal.cli.worker_process") as beating:
        from caudal.cli.worker_process import work

        work(
            store=store,
            broker=broker,
            name=name,
            tasks=tasks,
            quick=quick,
            memory_limit=memory_limit,
            workspace=workspace,
            wait=wait,
            metrics_port=metrics_port,
            metrics_token_file=metrics_token_file,
            log_format=log_format,
            fsync=fsync,
            beating=beating,
        )
