"""`caudal gateway`: what clients talk to."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from caudal.broker.opening import open_broker
from caudal.errors import StoreError
from caudal.gateway.computing import SharedCompute
from caudal.gateway.figures import Figures
from caudal.gateway.limits import Limits
from caudal.gateway.serving import Settings, serve
from caudal.gateway.tokens import Tokens, check_host, read_tokens
from caudal.gateway.upkeep import Pauses
from caudal.process.clock import SystemClock, new_id
from caudal.process.frame import Ending
from caudal.process.heart import Heart
from caudal.process.logs import Style, set_up_logs
from caudal.process.signals import Stop
from caudal.process.ticking import OnTick, ignore
from caudal.store import Store, open_store, require_conditional_create
from caudal.store.s3_settings import S3Settings
from caudal.tasks.life import Lives
from caudal.tasks.tools import Bounds, Tools

_LEAST_SILENCE_SECONDS = 5 * Pauses.reconciler  # else nobody would see that it lasted


def gateway(
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
    host: Annotated[
        str, typer.Option("--host", help="Where to listen; without tokens on loopback only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="0 takes a free one.")
    ] = 8421,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="Who may ask: a line `name:token` for each client."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="For logs.", show_default="gateway-PORT")
    ] = None,
    job_timeout: Annotated[
        float,
        typer.Option(
            "--job-timeout",
            min=1.0,
            help="Seconds after which a job whose client is silent expires, at most.",
        ),
    ] = 30 * 86_400.0,
    rate: Annotated[
        float, typer.Option("--rate", min=1.0, help="Requests a second of one token.")
    ] = Limits.rate_per_second,
    sentiment: Annotated[
        list[str] | None,
        typer.Option(
            "--sentiment",
            help="Offer this model besides `lexicon`: transformers:DIR, the same on all workers.",
        ),
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
    """Take jobs from clients and look after them. Any number of gateways run side by side.

    SIGTERM lets it finish what it holds and leave within ten seconds.
    """
    tokens = read_tokens(token_file) if token_file else Tokens()
    check_host(host, tokens)
    known = name or f"gateway-{port}"
    limits = Limits(rate_per_second=rate, rate_burst=2 * rate)
    settings = Settings(new_id(), host, port, tokens, limits)
    figures, stop = Figures(), Stop()
    set_up_logs(log_format, "gateway", known)
    with ExitStack() as held:
        on_tick: OnTick = ignore
        if heart is not None:
            beating = Heart(heart, lambda: figures.answered)
            held.callback(beating.close)
            on_tick = beating.beat
        queue = open_broker(broker, known)
        held.callback(queue.close)
        opened, compute = _opened_store(store, fsync), SharedCompute(limits.plans)
        tools = Tools(
            store=opened,
            broker=queue,
            compute=compute,
            clock=SystemClock(stop),
            new_id=new_id,
            lives=Lives(opened),
            bounds=Bounds(
                silence_seconds=(min(_LEAST_SILENCE_SECONDS, job_timeout), job_timeout),
                batch_bytes=limits.records_bytes,
                sentiments=("lexicon", *(sentiment or ())),
            ),
        )
        if serve(settings, tools, stop, figures, on_tick) is Ending.ABANDONED:
            sys.stderr.flush()
            os._exit(0)  # a thread is stuck in a store that does not answer: nothing depends on it
        compute.close()


def _opened_store(url: str, fsync: bool) -> Store:
    if not url.lower().startswith("s3:"):
        return open_store(url, fsync=fsync)
    store = open_store(url, s3=S3Settings.from_environment())
    try:
        require_conditional_create(store)
    except StoreError as error:  # it may come back; a store that breaks its promise never does
        typer.echo(f"caudal: the store does not answer yet: {error}", err=True)
    return store
