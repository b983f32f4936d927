"""The content of a heartbeat, and of a host's record of a process."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pulse:
    """The content of a heartbeat. `incarnation` grows with every start of the same name."""

    name: str
    incarnation: int
    sequence: int
    pid: int = 0
    ticks: int = 0  # turns of the process's own loop
    progress: int = 0  # tasks done, requests served
    memory: int = 0  # resident bytes
    detail: str = ""  # a medic: its role and term
    ready: bool = True  # False while it loads
    version: str = ""  # of Caudal
    cpu: float = 0.0  # seconds that it computed since its start
    quiet: float = 0.0  # seconds that it may be silent from now on, without being dead


@dataclass(frozen=True)
class HostRecord:
    """What a medic knows of a process on its own host."""

    name: str
    incarnation: int
    age: float  # seconds since it was started
    gone: bool  # its pid does not exist any more
    stopped: bool = False  # it exists, but was stopped by SIGSTOP
    first: int = 1  # the incarnation since which only medics have restarted it
    stopped_for: float = 0.0  # seconds since when that medic knows that it is stopped
