"""`caudal worker`: what does the work of a cluster."""

import os
import shutil
import socket
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from caudal.broker.opening import open_broker
from caudal.engine.database import parse_bytes
from caudal.errors import UsageError
from caudal.process.frame import Ending
from caudal.process.heart import Heart
from caudal.process.logs import Style, set_up_logs
from caudal.process.metrics import serving_metrics
from caudal.process.signals import Stop
from caudal.process.ticking import OnTick, ignore
from caudal.store import Store, open_store
from caudal.store.s3_settings import S3Settings
from caudal.worker.figures import Figures
from caudal.worker.process import Worker
from caudal.worker.settings import WorkerSettings, lanes_of
from caudal.worker.workspace import own_folder


def worker(
    store: Annotated[
        str,
        typer.Option("--store", envvar="CAUDAL_STORE", help="DIR or s3://bucket/prefix."),
    ],
    broker: Annotated[
        str,
        typer.Option(
            "--broker",
            envvar="CAUDAL_BROKER",
            help="amqp://user:password@host:5672/vhost; several nodes with commas.",
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="For logs.", show_default="HOST-PID")
    ] = None,
    tasks: Annotated[
        str, typer.Option("--tasks", help="Which kinds of tasks to take.")
    ] = "map,fold,finish",
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
    log_format: Annotated[
        Style, typer.Option("--log-format", help="Lines of json or text on standard error.")
    ] = "json",
    fsync: Annotated[
        bool,
        typer.Option("--fsync/--no-fsync", help="Let a directory survive a power cut."),
    ] = True,
    heart: Annotated[
        Path | None, typer.Option("--heart", hidden=True, help="What a medic tells it.")
    ] = None,
) -> None:
    """Do the tasks of all jobs: read batches, fold partitions, finish queries.

    Any number of workers run side by side, on any machines that reach the store and the broker.
    SIGTERM lets it finish or hand back what it holds and leave within ten seconds.
    """
    known = name or f"{socket.gethostname()}-{os.getpid()}"
    settings = WorkerSettings(known, lanes_of(tasks), parse_bytes(memory_limit), wait)
    token = _token(metrics_token_file)
    opened = open_broker(broker, known)
    figures = Figures()
    set_up_logs(log_format, "worker", known)
    with ExitStack() as held:
        held.callback(opened.close)
        folder = held.enter_context(own_folder(workspace))
        port = held.enter_context(serving_metrics(figures.registry, metrics_port, token))
        settings = replace(settings, metrics_port=port)
        worker = Worker(settings, lambda: _opened(store, fsync), opened, folder, figures, Stop())
        on_tick: OnTick = ignore
        if heart is not None:
            beating = Heart(heart, lambda: figures.done)
            held.callback(beating.close)
            on_tick = beating.beat
        if worker.run(on_tick) is Ending.ABANDONED:
            _leave(folder)


def _opened(url: str, fsync: bool) -> Store:
    s3 = S3Settings.from_environment() if url.lower().startswith("s3:") else None
    return open_store(url, s3=s3, fsync=fsync)


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the token in {path}: {error}") from None
    if not token or len(token.split()) != 1:
        raise UsageError(f"{path} must hold one token on one line")
    return token


def _leave(folder: Path) -> NoReturn:
    """End with a thread still computing: the broker gives its task to another."""
    shutil.rmtree(folder, ignore_errors=True)
    sys.stderr.flush()
    os._exit(0)
