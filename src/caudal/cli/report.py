"""`caudal report`: a job of a cluster as one HTML file."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from caudal.cli.gateways import (
    CaOption,
    GatewayOption,
    GatewayOptions,
    PatienceOption,
    TokenFileOption,
)
from caudal.cli.jobs import JobArgument
from caudal.cli.report_file import require_writable
from caudal.cli.report_page import REPORTED_ROWS, write_report
from caudal.client.http import HttpGateways
from caudal.formats.keys import REJECTS
from caudal.formats.replies import JobStatus

_AROUND_SECONDS = 10.0  # samples shown before and after the job


def report(
    job: JobArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")],
    gateway: GatewayOption = None,
    token_file: TokenFileOption = None,
    patience: PatienceOption = 60.0,
    ca: CaOption = None,
) -> None:
    """Write a job as one HTML file: plans, timeline, answers with charts, rejected rows.

    The file needs no server. Of each answer it holds the first 2,000 rows.

    Example: `caudal report 8b1f0c… --out job.html --gateway http://one:8421`
    """
    require_writable(out)
    with GatewayOptions(gateway, token_file, patience, ca).open() as gateways:
        data = job_data(gateways, job)
    write_report(out, data)
    typer.echo(f"wrote {out}", err=True)


def job_data(gateways: HttpGateways, job: str) -> dict[str, Any]:
    """Return what a report of a job shows, as the page gathers it."""
    status = gateways.status(job)
    ready = [one for one in status.queries if one in status.results and one not in status.failed]
    has_rejects = REJECTS in status.results
    return {
        "job": job,
        "made": time.time(),
        "status": status,
        "plans": gateways.plans(job).queries,
        "tasks": list(gateways.tasks(job)),
        "samples": _samples(gateways, status),
        "results": {
            name: {
                "about": gateways.about(job, name),
                "rows": gateways.first_rows(job, name, REPORTED_ROWS),
            }
            for name in ready
        },
        "rejects": gateways.first_rows(job, None, REPORTED_ROWS) if has_rejects else [],
    }


def _samples(gateways: HttpGateways, status: JobStatus) -> list[Any]:
    end = status.outcome.at if status.outcome else time.time()
    return [
        one
        for one in gateways.samples()
        if status.created - _AROUND_SECONDS <= one.at <= end + _AROUND_SECONDS
    ]
