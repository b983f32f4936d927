"""The options that gateways and workers share."""

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
        help="amqp://user:password@host:5672/vhost; several nodes with commas.",
    ),
]
LogFormatOption = Annotated[
    Style, typer.Option("--log-format", help="Lines of json or text on standard error.")
]
FsyncOption = Annotated[
    bool, typer.Option("--fsync/--no-fsync", help="Let a directory survive a power cut.")
]
HeartOption = Annotated[
    Path | None, typer.Option("--heart", hidden=True, help="What a medic tells it.")
]
