"""What a medic tells about its cluster: `caudal status`, the page, chaos."""

from enum import StrEnum

import msgspec


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
