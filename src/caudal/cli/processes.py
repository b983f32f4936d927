"""Options shared by gateways and workers."""

from pathlib import Path
from typing import Annotated

import typer

from caudal.process.logs import Style

StoreOption = Annotated[
    str, typer.Option("--store", envvar="CAUDAL_STORE", help="DIR or s3://bucket/prefix.")
]
BrokerOption = Annotated[
    str,
    typer.Option(
        "--broker",
        envvar="CAUDAL_BROKER",
        help="amqp://user:password@host:5672/vhost; separate several nodes with commas.",
    ),
]
LogFormatOption = Annotated[
    Style, typer.Option("--log-format", help="Log to standard error as json or text lines.")
]
FsyncOption = Annotated[
    bool, typer.Option("--fsync/--no-fsync", help="Make a directory store survive a power cut.")
]
HeartOption = Annotated[
    Path | None, typer.Option("--heart", hidden=True, help="The heartbeat settings from the medic.")
]
