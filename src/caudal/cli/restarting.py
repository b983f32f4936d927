"""`caudal restart`: a host's processes anew, one by one."""

import sys
from typing import Annotated

import typer

from caudal.cli.cluster import DEFAULT_DIR, DirOption, HostOption
from caudal.cluster.folder import Cluster
from caudal.cluster.rolling import chosen
from caudal.cluster.rolling import restart as restart_members
from caudal.errors import UsageError


def restart(
    names: Annotated[
        list[str] | None, typer.Argument(help="Processes, as `caudal status` names them.")
    ] = None,
    folder: DirOption = DEFAULT_DIR,
    host: HostOption = None,
    rolling: Annotated[
        bool, typer.Option("--rolling", help="All processes of this host but a private broker.")
    ] = False,
    patience: Annotated[
        float, typer.Option("--patience", min=1.0, help="Seconds for each to become healthy.")
    ] = 120.0,
) -> None:
    """Restart processes of this host one by one; each must be healthy before the next.

    Jobs go on. Stops at the first that does not become healthy. Examples:

    - `caudal restart worker-1` after a change of settings that running processes do not follow
    - `NEW/bin/caudal restart --rolling` an upgrade: NEW is an environment with the new version
    """
    if bool(names) == rolling:
        raise UsageError("name the processes, or give --rolling for all of this host")
    cluster = Cluster.open(folder, host)
    members = chosen(cluster.here, names or [])
    restart_members(cluster, members, lambda line: print(line, file=sys.stderr), patience)
