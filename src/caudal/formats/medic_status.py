"""What a medic tells about its cluster: `caudal status`, the page, chaos."""

from enum import StrEnum

import msgspec

OTHER_VERSION = "left to a worker of another version: "
_LEFT_SECONDS = 30.0  # how long a worker says that it left a task


def told_work(doing: str, left: str, since: float) -> str:
    """Return what a worker says of its work: its task, or why it left one not long ago.

    >>> told_work("map t 1", "", 99.0), told_work("map t 1", "job j has a plan of level 2", 9.0)
    ('map t 1', 'left to a worker of another version: job j has a plan of level 2')
    """
    return f"{OTHER_VERSION}{left}" if left and since < _LEFT_SECONDS else doing


class FaultKind(StrEnum):
    """How a victim is hit. A frozen one must miss four heartbeats before it can be noticed."""

    KILL = "killed"
    FREEZE = "frozen"


class ProcessStatus(msgspec.Struct, frozen=True):
    """One process, as the asked medic sees it."""

    name: str
    kind: str
    host: str
    state: str
    incarnation: int
    restarts: int
    heard_seconds: float | None  # since its last heartbeat
    progress: int
    memory: int
    pid: int
    detail: str
    address: str
    version: str = ""  # of Caudal
    cpu: float = 0.0  # seconds that it computed since its start


class StatusReply(msgspec.Struct, frozen=True, tag="told"):
    """The answer: the medic that answers, the leader that it knows, and all processes."""

    medic: str
    role: str
    term: int
    leader: str
    processes: list[ProcessStatus]
    unverified: int = 0  # messages that the medic received and that another secret signed
    differing: list[str] = []  # hosts whose cluster.toml names other members
    chaos: bool = False  # whether cluster.toml allows strikes over HTTP
    settings: dict[str, list[str]] = {}  # hosts with other values in cluster.toml, and which keys
    unverified_ago: float | None = None  # seconds since the last such message; None: not known
    awake: float | None = None  # seconds since the medic started; None: an earlier version
    unreadable: int = 0  # heartbeats that are signed, but have a form that the medic does not know
    unreadable_ago: float | None = None  # seconds since the last one
