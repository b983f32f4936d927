"""`caudal gateway`: the options. The gateway's own modules load when it starts."""

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
        help="The token file that `caudal token new` writes; reloaded when it changes.",
    ),
]
CertificateOption = Annotated[
    Path | None,
    typer.Option("--tls-certificate", help="Use TLS with this PEM file; reloaded when it changes."),
]
KeyOption = Annotated[
    Path | None,
    typer.Option("--tls-key", help="The key of the certificate, a PEM file without password."),
]
QuotasOption = Annotated[
    Path | None,
    typer.Option(
        "--quotas",
        help="A TOML file with [quotas], such as cluster.toml; reloaded when it changes.",
    ),
]
AuditOption = Annotated[
    Path | None, typer.Option("--audit", help="Write the audit log to this file, as JSON lines.")
]
KeepResultsOption = Annotated[
    str | None,
    typer.Option(
        "--keep-results",
        help="How long results are kept after a job ends, such as 12h or 7d.",
        show_default="as each job requests, else one day",
    ),
]
KeepUnusedOption = Annotated[
    str,
    typer.Option(
        "--keep-unused", help="How long outputs over datasets stay that no question uses."
    ),
]


def gateway(
    store: StoreOption,
    broker: BrokerOption,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; without tokens loopback only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="0 chooses a free port.")
    ] = 8421,
    token_file: TokensOption = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name in logs.", show_default="gateway-PORT")
    ] = None,
    job_timeout: Annotated[
        float,
        typer.Option(
            "--job-timeout",
            min=1.0,
            help="Longest silence of a client, in seconds, before its job expires.",
        ),
    ] = 30 * 86_400.0,
    keep_results: KeepResultsOption = None,
    keep_unused: KeepUnusedOption = "7d",
    rate: Annotated[
        float, typer.Option("--rate", min=1.0, help="Requests per second allowed per owner.")
    ] = GatewayLimits.rate_per_second,
    tls_certificate: CertificateOption = None,
    tls_key: KeyOption = None,
    quotas: QuotasOption = None,
    audit: AuditOption = None,
    sentiment: Annotated[
        list[str] | None,
        typer.Option(
            "--sentiment",
            help="Another model besides `lexicon`: transformers:DIR, the same on all workers.",
        ),
    ] = None,
    log_format: LogFormatOption = "json",
    fsync: FsyncOption = True,
    heart: HeartOption = None,
) -> None:
    """Accept and manage jobs of clients. Any number of gateways can run at the same time.

    On SIGTERM it finishes its current requests and exits within ten seconds.
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
            keep_unused=keep_unused,
            rate=rate,
            sentiment=sentiment or [],
            log_format=log_format,
            fsync=fsync,
            beating=beating,
        )
