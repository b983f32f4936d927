"""`caudal worker`: the options. The worker's own modules load when it starts."""

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

WaitOption = Annotated[
    float | None,
    typer.Option(
        "--wait",
        min=0.0,
        help="Seconds to wait for store and broker at the start.",
        show_default="no limit",
    ),
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        min=0,
        max=65_535,
        help="Port for Prometheus metrics; without a token loopback only; 0 chooses a port.",
    ),
]
MetricsTokenOption = Annotated[
    Path | None,
    typer.Option("--metrics-token-file", help="A file with the token for the metrics."),
]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sentiment",
        help="A model to load before the first task: `transformers:/DIR`; may be repeated.",
    ),
]


def worker(
    store: StoreOption,
    broker: BrokerOption,
    name: Annotated[
        str | None, typer.Option("--name", help="Name in logs.", show_default="HOST-PID")
    ] = None,
    tasks: Annotated[
        str, typer.Option("--tasks", help="The kinds of tasks to execute.")
    ] = "map,fold,finish,slow",
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Prefer short tasks: slow ones run last and give way."),
    ] = False,
    memory_limit: Annotated[
        str, typer.Option("--memory-limit", help="Memory for the process; the rest spills to disk.")
    ] = "700MB",
    workspace: Annotated[
        Path | None,
        typer.Option(
            "--workspace", help="Folder for spilled data.", show_default="the system's TMPDIR"
        ),
    ] = None,
    wait: WaitOption = None,
    metrics_port: MetricsPortOption = None,
    metrics_token_file: MetricsTokenOption = None,
    sentiment: ModelsOption = None,
    log_format: LogFormatOption = "json",
    fsync: FsyncOption = True,
    heart: HeartOption = None,
) -> None:
    """Execute tasks of all jobs: read batches, fold partitions, finish queries.

    Any number of workers can run at the same time, on all machines that reach the store and the
    broker. On SIGTERM a worker finishes its tasks or hands them back, and exits within ten seconds.
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
            sentiment=sentiment or [],
            log_format=log_format,
            fsync=fsync,
            beating=beating,
        )
