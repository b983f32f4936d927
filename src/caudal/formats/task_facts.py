"""Facts about tasks and processes, for people who watch. Nothing is decided by them.

    jobs/J/RUN/facts/{milliseconds:013}-SESSION     what one worker did for the run (TaskFacts)
    facts/processes/{slot:010}                      all processes at one moment (ProcessSample)

They are written with `lasting=False` and may be lost. See docs/formats/facts.md.
"""

import msgspec

from caudal.formats import document

SLOT_SECONDS = 5.0  # of process samples
PROCESSES = "facts/processes/"
_FORMAT = 1


class TaskFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One delivery of one task. `began` and `ended` are in seconds since 1970, by its worker."""

    kind: str
    name: str
    number: int
    worker: str
    began: float
    ended: float
    end: str  # a TaskEnd
    deliveries: int = 1
    bytes_in: int = 0
    bytes_out: int = 0
    stages: dict[str, tuple[int, int]] = {}  # rows and bytes of each stage that it made
    reason: str = ""


class TaskFacts(msgspec.Struct, frozen=True):
    """What one worker did in a few seconds."""

    tasks: tuple[TaskFact, ...]


class ProcessFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One process at one moment. `cpu` counts the seconds that it computed since its start."""

    name: str
    state: str
    incarnation: int
    memory: int = 0
    cpu: float = 0.0
    detail: str = ""


class ProcessSample(msgspec.Struct, frozen=True):
    """All processes as a medic saw them, `at` seconds since 1970."""

    at: float
    leader: str
    term: int
    processes: tuple[ProcessFact, ...]


def encode_tasks(facts: TaskFacts) -> bytes:
    return document.encode("task facts", _FORMAT, facts)


def decode_tasks(data: bytes, key: str) -> TaskFacts:
    return document.decode(data, "task facts", _FORMAT, TaskFacts, key)


def encode_sample(sample: ProcessSample) -> bytes:
    return document.encode("process sample", _FORMAT, sample)


def decode_sample(data: bytes, key: str) -> ProcessSample:
    return document.decode(data, "process sample", _FORMAT, ProcessSample, key)


def sample_key(at: float) -> str:
    """Return the key of the sample of that moment: all gateways use the same one.

    >>> sample_key(1234567890.0)
    'facts/processes/0246913578'
    """
    return f"{PROCESSES}{int(at // SLOT_SECONDS):010}"
