"""The command `caudal scale`: another number of workers or gateways on a host."""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from caudal.cli.cluster import DEFAULT_DIR, DirOption, HostOption
from caudal.cluster import upkeep
from caudal.cluster.commands import command
from caudal.cluster.folder import Cluster
from caudal.cluster.notices import differences
from caudal.cluster.settings import FILE, parse
from caudal.errors import UsageError


def scale(
    counts: Annotated[list[str], typer.Argument(help="worker=4, gateway=3")],
    folder: DirOption = DEFAULT_DIR,
    host: HostOption = None,
) -> None:
    """Change how many workers or gateways a host runs, without stopping a job."""
    cluster = Cluster.open(folder, host)
    path = cluster.folder / FILE
    text = path.read_text(encoding="utf-8")
    for given in counts:
        match = re.fullmatch(r"(worker|gateway)s?=(\d{1,9})", given)
        if match is None:
            raise UsageError(f"{given!r}: write worker=4 or gateway=3")
        text = _with_count(text, cluster.host, f"{match[1]}s", int(match[2]))
        hosts = parse(text.encode("utf-8"), str(path)).hosts.values()
        if match[1] == "gateway" and not any(one.gateways for one in hosts):
            raise UsageError(f"{given}: without gateways nothing can reach a cluster: keep one")
    told = upkeep.look(cluster)  # before the change: it raises an error if the secret is gone
    _replace(path, text)
    if not any(one.workers for one in parse(text.encode("utf-8"), str(path)).hosts.values()):
        more = f"`{command(cluster, 'scale worker=2')}`"
        print(f"no host has a worker now, so every job waits: {more} adds two", file=sys.stderr)
    if told is None:
        print(f"{path} is changed; {upkeep.nobody_answers(cluster)}", file=sys.stderr)
        return
    others = [name for name in cluster.settings.hosts if name != cluster.host]
    for difference in differences(cluster, told):
        print(difference, file=sys.stderr)
    if others:
        print(
            f"make the same change on {', '.join(others)}, unless the hosts share the file: a "
            f"leader follows the {FILE} of its own host",
            file=sys.stderr,
        )
    follow = f"the medics apply this within a few seconds: {command(cluster, 'status')}"
    print(follow, file=sys.stderr)


def _with_count(text: str, host: str, what: str, count: int) -> str:
    """Return the file's text with the new count; everything else is unchanged."""
    section = re.search(rf"(?ms)^\[hosts\.{re.escape(host)}\]\n(.*?)(?=^\[|\Z)", text)
    if section is None:
        raise UsageError(f"{FILE} has no [hosts.{host}] to change; edit it by hand")
    body, found = re.subn(rf"(?m)^({what}\s*=\s*)\d+", rf"\g<1>{count}", section[1])
    if not found:
        body = f"{what} = {count}\n{body}"
    return text[: section.start(1)] + body + text[section.end(1) :]


def _replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(text, encoding="utf-8")
    temporary.rename(path)
