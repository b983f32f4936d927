"""The worker process, with its imports: DuckDB, Arrow and the broker library."""

import os
import shutil
import socket
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from caudal.broker.open_broker import open_broker
from caudal.formats.medic_status import told_work
from caudal.formats.task_kinds import lanes_of
from caudal.process.frame import ProcessExit
from caudal.process.heart import Heart
from caudal.process.logs import Style, set_up_logs
from caudal.process.metrics import serving_metrics
from caudal.process.signals import Stop
from caudal.process.ticks import LastTick, OnTick, Tick, ignore
from caudal.process.tokens import read_strong
from caudal.sizes import parse_bytes
from caudal.store import open_store
from caudal.worker.figures import WorkerMetrics
from caudal.worker.models import ready_models
from caudal.worker.process import Worker
from caudal.worker.settings import WorkerSettings
from caudal.worker.workspace import own_folder


def work(
    *,
    store: str,
    broker: str,
    name: str | None,
    tasks: str,
    quick: bool,
    memory_limit: str,
    workspace: Path | None,
    wait: float | None,
    metrics_port: int | None,
    metrics_token_file: Path | None,
    sentiment: list[str],
    log_format: Style,
    fsync: bool,
    beating: Heart | None,
) -> None:
    """Work until a stop is requested; the options are those of `caudal worker`."""
    known = name or f"{socket.gethostname()}-{os.getpid()}"
    settings = WorkerSettings(
        known, lanes_of(tasks), quick, memory_bytes=parse_bytes(memory_limit), wait_seconds=wait
    )
    token = read_strong(metrics_token_file) if metrics_token_file else None
    opened = open_broker(broker, known)
    figures, last_tick = WorkerMetrics(), LastTick()
    set_up_logs(log_format, "worker", known)
    models = ready_models(sentiment, beating)
    with ExitStack() as held:
        held.callback(opened.close)
        folder = held.enter_context(own_folder(workspace))
        serving = serving_metrics(
            figures.registry,
            metrics_port,
            token,
            lambda: figures.takes_tasks,
            alive=last_tick.is_recent,
        )
        port = held.enter_context(serving)
        settings = replace(settings, metrics_port=port)
        worker = Worker(
            settings,
            lambda: open_store(store, fsync=fsync),
            opened,
            folder,
            figures,
            Stop(),
            models,
            beating.store_passed if beating else None,
        )
        worker.on_ready = partial(_tell_ready, figures, beating)
        on_tick: OnTick = ignore
        if beating is not None:
            beating.progress = lambda: figures.done
            beating.ready = False  # until kernels are compiled, and store and broker are reachable
            on_tick = partial(_beat, beating, figures)
        if worker.run(last_tick.noted(on_tick)) is ProcessExit.ABANDONED:
            _leave(folder)
    if worker.outgrown and beating is None:
        os.execv(sys.executable, sys.orig_argv)  # without a medic it restarts itself


def _beat(beating: Heart, figures: WorkerMetrics, tick: Tick) -> None:
    """Send a heartbeat that says what the worker computes, or what it cannot compute."""
    beating.beat(tick, told_work(figures.doing, figures.left, time.monotonic() - figures.left_at))


def _tell_ready(figures: WorkerMetrics, beating: Heart | None) -> None:
    """Tell probes and medics that the worker begins to take tasks."""
    figures.ready = True
    if beating is not None:
        beating.ready = True


def _leave(folder: Path) -> NoReturn:
    """Exit while a thread still computes: the broker gives its task to another worker."""
    shutil.rmtree(folder, ignore_errors=True)
    sys.stderr.flush()
    os._exit(0)
