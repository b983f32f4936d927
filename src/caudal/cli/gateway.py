"""`caudal gateway`: what clients talk to. Its options; the rest loads as it starts."""

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
from caudal.gateway.limits import GatewayLimits
from caudal.process.heart import alive

TokensOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        help="Who may ask: what `caudal token new` writes; read again when it changes.",
    ),
]
CertificateOption = Annotated[
    Path | None,
    typer.Option("--tls-certificate", help="Speak TLS with this PEM file; followed."),
]
KeyOption = Annotated[
    Path | None, typer.Option("--tls-key", help="Its key, a PEM file without password.")
]
QuotasOption = Annotated[
    Path | None,
    typer.Option("--quotas", help="A TOML file with [quotas], such as cluster.toml; followed."),
]
AuditOption = Annotated[
    Path | None, typer.Option("--audit", help="Write who did what to this file, as JSON lines.")
]


def gateway(
    store: StoreOption,
    broker: BrokerOption,
    host: Annotated[
        str, typer.Option("--host", help="Where to listen; without tokens on loopback only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="0 takes a free one.")
    ] = 8421,
    token_file: TokensOption = None,
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
    keep_results: Annotated[
        str | None,
        typer.Option(
            "--keep-results",
            help="How long results stay after a job's end, like 12h or 7d.",
            show_default="as each job asked for, one day",
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", min=1.0, help="Requests a second of one owner.")
    ] = GatewayLimits.rate_per_second,
    tls_certificate: CertificateOption = None,
    tls_key: KeyOption = None,
    quotas: QuotasOption = None,
    audit: AuditOption = None,
    sentiment: Annotated[
        list[str] | None,
        typer.Option(
            "--sentiment",
            help="Offer this model besides `lexicon`: transformers:DIR, the same on all workers.",
        ),
    ] = None,
    log_format: LogFormatOption = "json",
    fsync: FsyncOption = True,
    heart: HeartOption = None,
) -> None:
    """Take jobs from clients and look after them. Any number of gateways run side by side.

    SIGTERM lets it finish what it holds and leave within ten seconds.
    """
    with alive(heart, "caudal.cli.gateway_process") as beating:
        from caudal.cli.gateway_process import Access, serve

        serve(
            store=store,
            broker=broker,
            host=host,
            port=port,
            access=Access(token_file, tls_certificate, tls_key, quotas, audit),
            name=name,
            job_timeout=job_timeout,
            keep_results=keep_results,
            rate=rate,
            sentiment=sentiment or [],
            log_format=log_format,
            fsync=fsync,
            beating=beating,
        )
