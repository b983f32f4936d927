"""Commands that test a cluster: `caudal doctor` and `chaos`."""

from typing import Annotated

import typer

from caudal.cli.cluster import DEFAULT_DIR, DirOption, HostOption
from caudal.cluster.chaos import ChaosPlan, Hit, strike
from caudal.cluster.commands import command
from caudal.cluster.doctor import examine, silent_logs
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import MemberKind
from caudal.errors import JobError, UsageError


def doctor(folder: DirOption = DEFAULT_DIR, host: HostOption = None) -> None:
    """Check broker, store, ports, disk and limits, and print a remedy for each problem."""
    cluster = Cluster.open(folder, host)
    ill = 0
    with silent_logs():
        for finding in examine(cluster):
            mark = "ok " if not finding.remedy else "BAD"
            print(f"{mark} {finding.what}: {finding.found}")
            if finding.remedy:
                ill += 1
                print(f"      {finding.remedy}")
    if ill:
        raise JobError(f"fix the {ill} marked BAD above")


def chaos(
    folder: DirOption = DEFAULT_DIR,
    host: HostOption = None,
    kills: Annotated[int, typer.Option("--kills", min=1, help="How many processes to kill.")] = 10,
    kinds: Annotated[
        str, typer.Option("--kinds", help="Which of gateway, worker, medic, broker.")
    ] = "gateway,worker,medic",
    name: Annotated[str | None, typer.Option("--name", help="Kill only this process.")] = None,
    freeze: Annotated[
        bool, typer.Option("--freeze", help="Freeze (SIGSTOP) one in three instead of killing it.")
    ] = False,
    broker: Annotated[bool, typer.Option("--broker", help="Kill the private broker too.")] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.0, help="Mean seconds between kills.")
    ] = 2.0,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Repeat the choices of a run with this seed.")
    ] = None,
) -> None:
    """Kill processes of a running cluster at random moments, and report how it recovers.

    Only the medics restart processes. The answers of running jobs must stay exactly right.
    """
    cluster = Cluster.open(folder, host)
    chosen = [*(one.strip() for one in kinds.split(",")), *(["broker"] if broker else [])]
    if unknown := [one for one in chosen if one not in list(MemberKind)]:
        raise UsageError(f"--kinds {unknown[0]}: choose from {', '.join(MemberKind)}")
    if name is not None and name not in [member.name for member in cluster.here]:
        names = ", ".join(member.name for member in cluster.here)
        raise UsageError(f"--name {name}: this host has {names}")
    plan = ChaosPlan(
        kills,
        tuple(MemberKind(one) for one in dict.fromkeys(chosen)),
        name,
        1 / 3 if freeze else 0.0,
        max(every, 0.01),
        seed=seed,
    )
    report = strike(cluster, plan, _tell)
    for line in report.lines():
        print(line)
    if report.lost:
        see = f"see `{command(cluster, 'logs NAME')}`"
        raise JobError(f"not restarted: {', '.join(report.lost)}; {see}")
    if (hits := sum(report.hits.values())) < kills:
        see = f"`{command(cluster, 'status')}` shows what runs"
        raise JobError(f"only {hits} of {kills}: no other process could be hit; {see}")


def _tell(hit: Hit) -> None:
    leader = ", the leader" if hit.led else ""
    typer.echo(f"{hit.way} {hit.name} (incarnation {hit.incarnation}){leader}", err=True)
