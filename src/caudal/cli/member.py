"""Commands of containers: `caudal init` lays out the folder, `caudal member` runs one process."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from caudal.cli.cluster import DEFAULT_DIR, DirOption, HostOption
from caudal.cli.program import make_program
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member, MemberKind
from caudal.cluster.settings import FILE, parse
from caudal.cluster.upkeep import lay_out_containers, note_first_start
from caudal.errors import UsageError
from caudal.process.privacy import keep_private, private_file

_HEALTH = "CAUDAL_HEALTH"  # the file that tells process/healthy.py whom to ask


def init(
    source: Annotated[
        Path, typer.Option("--from", help="The cluster.toml to begin with, if there is none yet.")
    ],
    folder: DirOption = DEFAULT_DIR,
    host: HostOption = None,
) -> None:
    """Lay out the folder of a cluster whose processes run in containers.

    Safe to repeat: existing settings, secrets and data stay.
    """
    keep_private()
    path = folder / FILE
    try:
        data = source.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {source}: {error.strerror}") from error
    parse(data, str(source))
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        private_file(path)
        path.write_bytes(data)
        print(f"wrote {path}", file=sys.stderr)
    elif path.read_bytes() != data:
        print(f"{path} exists and differs from {source}: it stays as it is", file=sys.stderr)
    lay_out_containers(Cluster.open(folder, host))


def member(
    name: Annotated[str, typer.Argument(help="The name of a process, from `caudal status`.")],
    folder: DirOption = DEFAULT_DIR,
    host: HostOption = None,
) -> None:
    """Run one process of a cluster by name, as cluster.toml says: the command of a container.

    The process takes the incarnation that a medic left for it, or the next one by itself.
    """
    keep_private()
    cluster = Cluster.open_anyway(folder, host)
    me = next((one for one in cluster.here if one.name == name), None)
    if me is None or me.kind is MemberKind.BROKER:  # after `caudal scale` made it superfluous
        print(f"{FILE} names no process {name} here: nothing to run", file=sys.stderr)
        return
    note_first_start(cluster)
    _tell_health(cluster, me)
    os.environ["CAUDAL_BROKER"] = cluster.broker_url()
    words = cluster.arguments(me, cluster.take_heart(me))
    make_program().main(words, prog_name="caudal", standalone_mode=False)


def _tell_health(cluster: Cluster, me: Member) -> None:
    path, address = os.environ.get(_HEALTH), cluster.health_of(me)
    if path and address:
        Path(path).write_text(address, encoding="ascii")
        Path(path).chmod(0o644)  # the check of a medic's container runs as another user
