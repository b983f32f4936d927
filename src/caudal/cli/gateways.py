"""Options of every command that connects to a cluster."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # loaded only by commands that connect
    from caudal.client.http import HttpGateways

GatewayOption = Annotated[
    str | None,
    typer.Option(
        "--gateway",
        "-g",
        metavar="URL[,URL...]",
        help="Gateways of the cluster; one is enough.",
        show_default="$CAUDAL_GATEWAY",
    ),
]
OptionalGatewayOption = Annotated[
    str | None,
    typer.Option(
        "--gateway",
        "-g",
        metavar="URL[,URL...]",
        help="Answer on this cluster, through any of these gateways.",
        show_default="answers on this machine",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", help="A file with the token.", show_default="$CAUDAL_TOKEN_FILE"),
]
CaOption = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        help="Trust the certificates in this PEM file, for https.",
        show_default="$CAUDAL_CA, or those of the system",
    ),
]
PatienceOption = Annotated[
    float,
    typer.Option(
        "--patience",
        metavar="SECONDS",
        min=0.0,
        help="Give up when no gateway answers for this long.",
    ),
]


@dataclass(frozen=True)
class GatewayOptions:
    """The options for connecting to the cluster."""

    gateway: str | None = None
    token_file: Path | None = None
    patience: float = 60.0
    ca: Path | None = None

    def open(self) -> "HttpGateways":
        from caudal.client.addresses import addresses_of, read_ca, read_token, warning_of
        from caudal.client.http import HttpGateways

        addresses = addresses_of(self.gateway, os.environ)
        token = read_token(self.token_file, os.environ)
        if line := warning_of(token, addresses):
            typer.echo(f"note: {line}", err=True)
        return HttpGateways(
            addresses,
            token,
            patience_seconds=self.patience,
            trusted=read_ca(self.ca, os.environ),
            tell=lambda line: typer.echo(line, err=True),
        )

    def words(self) -> list[str]:
        """Return the same settings as command-line options."""
        words = ["--gateway", self.gateway] if self.gateway else []
        words += ["--token-file", str(self.token_file)] if self.token_file else []
        return words + (["--ca", str(self.ca)] if self.ca else [])


@dataclass(frozen=True)
class ClusterOptions:
    """The options of a command whose dataset may lie on a cluster."""

    gateway: Annotated[
        str | None,
        typer.Option(
            "--gateway",
            "-g",
            metavar="URL[,URL...]",
            help="The dataset lies on this cluster.",
            show_default="it is a folder or on S3",
        ),
    ] = None
    token_file: TokenFileOption = None
    patience: PatienceOption = 60.0
    ca: CaOption = None

    def open(self) -> "HttpGateways":
        return self._way.open()

    def words(self) -> list[str]:
        """Return the same settings as command-line options."""
        return self._way.words()

    @property
    def _way(self) -> GatewayOptions:
        return GatewayOptions(self.gateway, self.token_file, self.patience, self.ca)
