"""What a person must do about a running cluster: for `caudal status`, `up` and `doctor`."""

from dataclasses import dataclass

from caudal.cluster.commands import command
from caudal.cluster.compare_settings import PASSWORD
from caudal.cluster.folder import Cluster
from caudal.formats.medic_status import OTHER_VERSION, ProcessStatus, StatusReply
from caudal.medic.supervision import State

_RECENT_SECONDS = 60.0  # a host with another secret sends such messages twice a second
_SAME_FILE = "make cluster.toml the same on all hosts"
SAME_PASSWORD = (
    f"compare {PASSWORD} on all hosts: the right one is that of the broker's first start"
)


@dataclass(frozen=True)
class Notice:
    """Something that the medics cannot mend, and what to do about it."""

    found: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.found}: {self.remedy}"


def notices(cluster: Cluster, told: StatusReply) -> list[Notice]:
    """Return what a person must do about the cluster."""
    found = []
    for host in sorted({one.host for one in told.processes if one.state == State.UNATTENDED}):
        what = f"host {host} has no running medic, so nothing is restarted there"
        found.append(Notice(what, f"run `{command(cluster, 'up', host)}` on it"))
    found += [_failing(cluster, one) for one in told.processes if one.state == State.FAILING]
    left = {
        one.detail.removeprefix(OTHER_VERSION): one
        for one in told.processes
        if one.detail.startswith(OTHER_VERSION)
    }
    for reason, one in left.items():
        version = one.version or "of an unknown version"
        what = "tasks wait for a worker of another version, usually a newer one"
        found.append(Notice(what, f"{one.name} ({version}) left them, because {reason}"))
    if told.unverified and (told.unverified_ago or 0.0) < _RECENT_SECONDS:
        what = f"{told.medic} received {told.unverified} messages that another secret signed"
        found.append(Notice(what, "compare the file `secret` in the folders of all hosts"))
    if told.unreadable and (told.unreadable_ago or 0.0) < _RECENT_SECONDS:
        what = f"{told.medic} received {told.unreadable} heartbeats that it cannot read"
        found.append(Notice(what, "install the same version of Caudal on all hosts"))
    return [*found, *differences(cluster, told)]


def differences(cluster: Cluster, told: StatusReply) -> list[Notice]:
    """Return in what the settings of hosts differ."""
    return [*_unknown_processes(cluster, told), *_other_files(told)]


def _failing(cluster: Cluster, one: ProcessStatus) -> Notice:
    see = command(cluster, f"logs {one.name}", one.host)
    why = f"`{see}` shows why, or the log of a medic"
    where = "" if one.host == cluster.host else f" on host {one.host}"
    return Notice(f"{one.name} dies again and again, or cannot be started", why + where)


def _unknown_processes(cluster: Cluster, told: StatusReply) -> list[Notice]:
    """Return how this host's cluster.toml differs from that of the medic that tells."""
    here = {one.name for one in cluster.members}
    there = {one.name for one in told.processes}
    lists = ((here - there, "only this host's file"), (there - here, f"only that of {told.medic}"))
    return [
        Notice(f"{whose} names {', '.join(sorted(names))}", _SAME_FILE)
        for names, whose in lists
        if names and len(cluster.settings.hosts) > 1
    ]


def _other_files(told: StatusReply) -> list[Notice]:
    found = []
    there = f"the host of {told.medic}"
    if told.differing:
        what = f"cluster.toml names other processes on {', '.join(told.differing)} than on {there}"
        found.append(Notice(what, _SAME_FILE))
    for host, differing in sorted(told.settings.items()):
        if keys := [one for one in differing if one != PASSWORD]:
            what = f"cluster.toml has another {', '.join(keys)} on {host} than on {there}"
            found.append(Notice(what, _SAME_FILE))
        if PASSWORD in differing:
            found.append(Notice(f"{host} has another {PASSWORD} than {there}", SAME_PASSWORD))
    return found
