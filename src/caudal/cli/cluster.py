"""Commands that run a whole cluster: `caudal up`, `down`, `status`, `logs`."""

import contextlib
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from caudal.cli.cluster_show import addresses, show_status, status_json
from caudal.cluster import upkeep
from caudal.cluster.commands import command
from caudal.cluster.doctor import not_ready, unreachable
from caudal.cluster.folder import Cluster
from caudal.cluster.notices import notices
from caudal.cluster.roster import MemberKind
from caudal.cluster.settings import FILE
from caudal.cluster.write_config import write_settings
from caudal.errors import JobError, UsageError
from caudal.formats.medic_status import StatusReply

DirOption = Annotated[
    Path, typer.Option("--dir", help="The cluster's folder.", envvar="CAUDAL_CLUSTER")
]
HostOption = Annotated[
    str | None, typer.Option("--host", help="This host's name, if cluster.toml has several.")
]
DEFAULT_DIR = Path("caudal-cluster")
_UP_SECONDS = 300.0  # the first start after an installation compiles kernels
_HEARING_SECONDS = 1.0  # two heartbeats of each medic


def up(
    folder: DirOption = DEFAULT_DIR,
    host: HostOption = None,
    broker: Annotated[
        str | None,
        typer.Option(
            "--broker",
            help="amqp://…, private (`up` starts a RabbitMQ) or embedded (a file, one host only). "
            "Default: private if RabbitMQ is installed, else embedded.",
        ),
    ] = None,
    store: Annotated[str | None, typer.Option("--store", help="A folder, or s3://…")] = None,
    medics: Annotated[int | None, typer.Option("--medics", min=1, max=9)] = None,
    gateways: Annotated[int | None, typer.Option("--gateways", min=0, max=40)] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=0, max=999)] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="The first port of the cluster.")
    ] = None,
    foreground: Annotated[
        bool,
        typer.Option("--foreground", help="Stay in the foreground; stop the cluster at the end."),
    ] = False,
) -> None:
    """Start all processes of a cluster that do not run yet, and wait until it is healthy.

    Writes cluster.toml if there is none. If there is one, its settings apply. Examples:

    - `caudal up` three medics, two gateways, two workers and a broker
    - `caudal up --broker amqp://me:secret@rabbit:5672/ --store s3://bucket/caudal`
    - `caudal up --host b` only the part of this host, in a cluster of several hosts
    """
    asked = {
        "broker": broker, "store": store, "medics": medics, "gateways": gateways,
        "workers": workers, "port": port,
    }  # fmt: skip
    if not (folder / FILE).exists():
        if host is not None:
            raise UsageError(
                f"{folder / FILE} does not exist: copy it from another host, or leave out --host "
                "for a new cluster of one host"
            )
        write_settings(folder, upkeep.require_startable, **asked)
        print(f"wrote {folder / FILE}", file=sys.stderr)
    elif any(value is not None for value in asked.values()):
        how = _how_to_change(asked, _typed_options(folder, host))
        raise UsageError(f"{folder / FILE} exists already: {how}")
    cluster = Cluster.open(folder, host)
    with _saying_what_runs_on(cluster):
        started = upkeep.start_all(cluster)
        print(f"broker: {cluster.broker_words}", file=sys.stderr)
        print(f"starting {', '.join(started) or 'nothing: all processes run'}", file=sys.stderr)
        if not foreground:
            _settle(cluster)
            return
        try:
            try:
                _settle(cluster)
            except JobError as error:  # what works goes on, and medics try again what does not
                print(error, file=sys.stderr)
            _stay()
        finally:
            upkeep.stop_all(cluster)


def _settle(cluster: Cluster) -> None:
    """Wait until all processes are healthy. Raise JobError that says what is not."""
    told = _wait_until_healthy(cluster, but=MemberKind.WORKER)
    missing = _missing(cluster)
    if not missing:  # workers are not healthy before they reach store and broker
        told = _wait_until_healthy(cluster)
    print(addresses(cluster, told))
    _tell_notices(cluster)
    if missing:
        raise JobError(missing)


def _how_to_change(asked: Mapping[str, object], options: str) -> str:
    """Return how an existing cluster.toml gets the settings that are asked for."""
    given = {name: value for name, value in asked.items() if value is not None}
    if given.keys() <= {"gateways", "workers"} and given.get("gateways") != 0:
        counts = " ".join(f"{name.removesuffix('s')}={value}" for name, value in given.items())
        return f"`caudal scale {counts} {options}` changes it, then `caudal up {options}`"
    return "edit it, or choose another --dir"


def _typed_options(folder: Path, host: str | None) -> str:
    return f"--dir {shlex.quote(str(folder))}" + (f" --host {host}" if host else "")


@contextlib.contextmanager
def _saying_what_runs_on(cluster: Cluster) -> Iterator[None]:
    """On Ctrl-C, print that the started processes keep running and how to stop them."""
    try:
        yield
    except KeyboardInterrupt:
        if cluster.is_running:
            print(
                f"the started processes keep running: `{command(cluster, 'status')}` shows "
                f"them, `{command(cluster, 'down')}` stops them",
                file=sys.stderr,
            )
        raise


def _wait_until_healthy(cluster: Cluster, but: MemberKind | None = None) -> StatusReply:
    names = [member.name for member in cluster.here if member.kind is not but]
    began = time.monotonic()

    def tell(line: str) -> None:
        print("\n  ".join((line, *_reasons(cluster, but))), file=sys.stderr, flush=True)

    told = upkeep.wait_until_healthy(cluster, _UP_SECONDS, names, tell)
    ill = names if told is None else upkeep.unhealthy(told, names)
    if told is not None and not ill:
        return told
    for name in ill:
        for line in upkeep.last_lines(cluster, name):
            print(f"  {name}: {line}", file=sys.stderr)
    for line in (*(notices(cluster, told) if told else ()), *_reasons(cluster, but)):
        print(line, file=sys.stderr)
    raise JobError(
        f"not healthy after {time.monotonic() - began:.0f} s: {', '.join(ill)}; "
        f"`{command(cluster, 'logs NAME')}` shows why, "
        f"`{command(cluster, 'down')}` stops the cluster"
    )


def _reasons(cluster: Cluster, but: MemberKind | None) -> list[str]:
    """Return why workers of this host may not be healthy: they wait for store and broker."""
    if but is MemberKind.WORKER:
        return []
    return [f"{one.what}: {one.found}; {one.remedy}" for one in unreachable(cluster)]


def _tell_notices(cluster: Cluster) -> None:
    """Print what the medics noticed: on several hosts, after they had time to hear each other."""
    if len(cluster.settings.hosts) > 1:
        time.sleep(_HEARING_SECONDS)
    told = upkeep.look(cluster)
    for notice in notices(cluster, told) if told else ():
        print(notice, file=sys.stderr)


def _missing(cluster: Cluster) -> str:
    """Return what else the gateways need before they can work; empty if nothing is missing."""
    for one in not_ready(cluster):
        ready = "all processes run, but the gateways are not ready"
        return f"{ready}: {one.what}: {one.found}; {one.remedy}"
    return ""


def _stay() -> NoReturn:
    """Wait for Ctrl-C. The cluster needs no restart when a missing part becomes available."""
    print("press Ctrl-C to stop the cluster", file=sys.stderr)
    while True:
        time.sleep(1)


def down(
    folder: DirOption = DEFAULT_DIR,
    host: HostOption = None,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Delete the data too: store, queues, logs, secret. cluster.toml, tokens and the "
            "audit log stay.",
        ),
    ] = False,
) -> None:
    """Stop every process of this host gracefully. Jobs and their data stay; `up` continues."""
    cluster = _opened_anyway(folder, host)
    stopped = upkeep.stop_all(cluster)
    if purge:
        upkeep.purge(cluster)
    what = f"stopped {', '.join(stopped)}" if stopped else "nothing was running"
    purged = f"; its data is deleted, {FILE}, tokens and audit/ stay in {cluster.folder}"
    print(what + (purged if purge else ""), file=sys.stderr)


def status(
    folder: DirOption = DEFAULT_DIR,
    host: HostOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every second.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for programs.")
    ] = False,
) -> None:
    """Show every process: state, incarnation, restarts, last heartbeat, memory, version."""
    if watch and as_json:
        raise UsageError("choose --watch or --json")
    cluster = Cluster.open(folder, host)
    if cluster.strayed:
        print(f"{cluster.strayed}: {upkeep.take_down_first(cluster)}", file=sys.stderr)
    if as_json:
        print(status_json(cluster, upkeep.look(cluster)))
        return
    show_status(cluster, lambda: upkeep.look(cluster), watch=watch)


def logs(
    name: Annotated[str, typer.Argument(help="The name of a process, from `caudal status`.")],
    folder: DirOption = DEFAULT_DIR,
    host: HostOption = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=100_000)] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show new lines until Ctrl-C.")
    ] = False,
) -> None:
    """Show the newest log lines of a process of this host."""
    cluster = _opened_anyway(folder, host)
    if name not in [member.name for member in cluster.here] and not cluster.log_of(name).exists():
        raise UsageError(f"no process {name!r} here: {', '.join(one.name for one in cluster.here)}")
    for line in upkeep.launcher_of(cluster).log_lines(name, lines, follow=follow):
        print(line, flush=follow)


def _opened_anyway(folder: Path, host: str | None) -> Cluster:
    cluster = Cluster.open_anyway(folder, host)
    if cluster.strayed:
        print(f"{cluster.strayed}; using the settings of the last start", file=sys.stderr)
    return cluster
