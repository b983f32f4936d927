"""Commands for jobs on a cluster: `caudal jobs`, `results`, `cancel`, `quotas`."""

from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import Annotated

import typer

from caudal.cli.consoles import message_console
from caudal.cli.gateways import (
    CaOption,
    GatewayOption,
    GatewayOptions,
    PatienceOption,
    TokenFileOption,
)
from caudal.cli.options import QueryOptions, with_asking
from caudal.cli.output import checked_destination, give, require_all
from caudal.cli.show import print_rejects
from caudal.client.http import HttpGateways
from caudal.client.results import error_of_outcome, rejects_of, result_of
from caudal.errors import JobError, QueryError, UsageError
from caudal.formats.keys import REJECTS
from caudal.formats.quotas import Quota, told
from caudal.formats.replies import JobStatus
from caudal.model import ADHOC
from caudal.results.answers import Result, one_line

JobArgument = Annotated[str, typer.Argument(help="The job's id.", metavar="JOB")]
_NOT_OF_FILES = frozenset(field.name for field in fields(QueryOptions)) - {"form", "out"}


def jobs(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="`delete JOB …` deletes jobs that have ended.", metavar="[delete JOB …]"
        ),
    ] = None,
    gateway: GatewayOption = None,
    token_file: TokenFileOption = None,
    patience: PatienceOption = 60.0,
    ca: CaOption = None,
) -> None:
    """List the jobs of this token on a cluster, or delete some that have ended.

    Examples:

    - `caudal jobs --gateway http://one:8421`
    - `caudal jobs delete 8b1f0c… --gateway http://one:8421`
    """
    action, *names = words or ["list"]
    if action not in ("list", "delete") or (action == "delete") != bool(names):
        raise UsageError("write `caudal jobs`, or `caudal jobs delete JOB …`")
    with GatewayOptions(gateway, token_file, patience, ca).open() as gateways:
        for name in names:
            typer.echo(f"job {name} ({gateways.delete(name).state}) is deleted")
        if names:
            return
        found = sorted(gateways.jobs(), key=lambda one: one.created)
        if not found:
            typer.echo("no jobs", err=True)
        for job in found:
            created = datetime.fromtimestamp(job.created).astimezone()
            line = f"{job.id}  {job.state:<9}  {created:%Y-%m-%d %H:%M:%S}  {job.application}"
            typer.echo(line + (f"  (failed: {', '.join(job.failed)})" if job.failed else ""))


@partial(with_asking, without=_NOT_OF_FILES)
def results(
    job: JobArgument,
    asking: QueryOptions,
    query: Annotated[
        list[str] | None, typer.Option("--query", "-q", help="Only this query (repeatable).")
    ] = None,
    gateway: GatewayOption = None,
    token_file: TokenFileOption = None,
    patience: PatienceOption = 60.0,
    ca: CaOption = None,
) -> None:
    """Give the answers of a job on a cluster that are ready.

    Queries that failed are named.

    Example: `caudal results 8b1f0c… --gateway http://one:8421 --out answers --format csv`
    """
    console = message_console()
    with GatewayOptions(gateway, token_file, patience, ca).open() as gateways:
        status = gateways.status(job)
        asked = _chosen(job, status, query)
        failures = {
            name: QueryError(one_line(status.failed[name]))
            for name in asked
            if name in status.failed
        }
        ready = [name for name in asked if name in status.results and name not in failures]
        if not ready:
            require_all(failures)
        destination = checked_destination(asking.form, asking.out, len(ready))
        give({name: _result(gateways, job, name, status.run) for name in ready}, destination)
        if REJECTS in status.results:
            print_rejects(rejects_of(gateways.result(job, REJECTS, status.run)), console)
    missing = [name for name in asked if name not in status.results]
    if missing:
        console.print(f"not ready yet: {', '.join(missing)}", highlight=False)
    require_all(failures)


def cancel(
    job: JobArgument,
    gateway: GatewayOption = None,
    token_file: TokenFileOption = None,
    patience: PatienceOption = 60.0,
    ca: CaOption = None,
) -> None:
    """Cancel a job on a cluster.

    Example: `caudal cancel 8b1f0c… --gateway http://one:8421`
    """
    with GatewayOptions(gateway, token_file, patience, ca).open() as gateways:
        outcome = gateways.cancel(job)
    typer.echo(f"job {job} is {outcome.state}" + (f": {outcome.reason}" if outcome.reason else ""))


def quotas(
    gateway: GatewayOption = None,
    token_file: TokenFileOption = None,
    patience: PatienceOption = 60.0,
    ca: CaOption = None,
) -> None:
    """Show the usage and the quotas of this token's owner on a cluster.

    With the right `admin`, show every owner. Requests, uploads and streams are counted by the
    gateway that answers.
    """
    with GatewayOptions(gateway, token_file, patience, ca).open() as gateways:
        page = gateways.quotas()
    for owner, quotas_ in page.owners.items():
        for name, one in quotas_.items():
            quota = Quota(name)
            used = "not counted" if one.used is None else told(quota, one.used)
            typer.echo(f"{owner}  {name}  {used} of {told(quota, one.most)}")


def _chosen(job: str, status: JobStatus, query: list[str] | None) -> list[str]:
    """Return the requested queries; raise an error if none of them has an answer."""
    for name in query or ():
        if name not in status.queries:
            known = ", ".join(status.queries)
            raise UsageError(f"job {job} has no query {name!r}; its queries are: {known}")
    asked = list(query or status.queries)
    if not any(name in status.results for name in asked):
        if status.outcome is not None and status.outcome.state != "done":
            raise error_of_outcome(job, status.outcome)
        raise JobError(f"job {job} has no answer yet: {_progress(status)}")
    return asked


def _progress(status: JobStatus) -> str:
    tables = [
        f"{table}: {one.mapped} of {one.arrived} batches read"
        + ("" if one.arrived == one.batches else ", more to come")
        for table, one in status.tables.items()
    ]
    return "; ".join(tables) or "it has ended, and its results were deleted"


def _result(gateways: HttpGateways, job: str, name: str, run: str) -> Result:
    found = result_of(name, gateways.result(job, name, run))
    return Result(name, "" if name == ADHOC else found.title, found.table, found.seconds)
