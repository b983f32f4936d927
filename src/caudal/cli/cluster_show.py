"""Terminal output about a cluster."""

import time
from collections.abc import Callable

import msgspec
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from caudal.cli.consoles import output_console
from caudal.cluster.folder import Cluster
from caudal.cluster.notices import notices
from caudal.cluster.roster import MemberKind
from caudal.cluster.upkeep import last_lines, nobody_answers
from caudal.formats.medic_status import ProcessStatus, StatusReply
from caudal.medic.supervision import State

_COLOURS = {
    State.HEALTHY: "green",
    State.STARTING: "yellow",
    State.DEAD: "red",
    State.UNATTENDED: "bold red",
    State.FAILING: "bold red",
}
_COLUMNS = (
    "process", "state", "incarnation", "restarts", "heard", "progress", "memory", "pid", "role",
    "address", "version",
)  # fmt: skip


def addresses(cluster: Cluster, told: StatusReply) -> str:
    """Return the addresses and places that a user of the cluster needs."""
    scheme = "https" if cluster.settings.tls.certificate else "http"
    gateways = [
        f"{scheme}://{one.address}:{one.port}"
        for one in cluster.members
        if one.kind is MemberKind.GATEWAY
    ]
    lines = [
        f"gateways  {','.join(gateways) or 'none'}",
        f"leader    {told.leader or 'none yet'}",
        f"store     {cluster.store}",
        f"folder    {cluster.folder}",
    ]
    return "\n".join(lines)


def show_status(cluster: Cluster, look: Callable[[], StatusReply | None], *, watch: bool) -> None:
    """Print the status once, or every second until Ctrl-C."""
    console = output_console()
    if not watch:
        told = look()
        if told is None:
            raise nobody_answers(cluster)
        console.print(_shown(cluster, told))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            told = look()
            shown = _shown(cluster, told) if told else "no medic answers"
            live.update(shown, refresh=True)
            time.sleep(1)


def status_json(cluster: Cluster, told: StatusReply | None) -> str:
    """Return the status reported by the medics as one JSON object."""
    if told is None:
        raise nobody_answers(cluster)
    return msgspec.json.format(msgspec.json.encode(told)).decode()


def _shown(cluster: Cluster, told: StatusReply) -> Group:
    words = (
        f"[dim]{escape(f'{one.name}: {line}')}[/dim]"
        for one in told.processes
        if one.state == State.FAILING
        for line in last_lines(cluster, one.name, 3)
    )
    lines = (f"[bold red]{escape(line)}[/bold red]" for line in map(str, notices(cluster, told)))
    return Group(status_table(told), *words, *lines)


def status_table(told: StatusReply) -> Table:
    """Return a table of all processes as one medic sees them."""
    table = Table(
        box=None,
        title_justify="left",
        title=f"leader {told.leader or '-'}, term {told.term} (seen by {told.medic})",
    )
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column in _COLUMNS[2:8] else "left")
    for one in told.processes:
        table.add_row(*_row(one))
    return table


def _row(one: ProcessStatus) -> list[str]:
    colour = _COLOURS.get(State(one.state), "")
    return [
        one.name,
        f"[{colour}]{one.state}[/{colour}]",
        str(one.incarnation),
        str(one.restarts),
        "never" if one.heard_seconds is None else f"{one.heard_seconds:.1f} s ago",
        str(one.progress) if one.kind != MemberKind.BROKER else "",
        f"{one.memory >> 20} MB" if one.memory else "",
        str(one.pid or ""),
        one.detail,
        one.address,
        one.version,
    ]
