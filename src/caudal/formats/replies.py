"""The answers of a gateway about jobs (docs/formats/http.md)."""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from caudal.formats.frame import Milliseconds, Reason
from caudal.formats.job import Options, Request
from caudal.formats.medic_status import ProcessStatus
from caudal.formats.outcomes import Outcome, State
from caudal.formats.task_facts import ProcessSample, TaskFact


@dataclass(frozen=True)
class Receipt:
    """A gateway's confirmation: the run, and the tables that the client must send."""

    run: str
    tables: tuple[str, ...]
    new: bool = field(default=True, compare=False)  # False: it was confirmed before
    ended: bool = field(default=False, compare=False)  # the batch's table has ended with it


class Question(msgspec.Struct, frozen=True):
    """A question to a dataset. Without `version`, its newest version is asked.

    `once` is a random text of the client. It keeps apart questions that depend on the time.
    """

    request: Request
    version: int | None = None
    once: str = ""


@dataclass(frozen=True)
class AskReceipt:
    """A gateway's confirmation of a question: the job that answers it, and the version."""

    job: str
    run: str
    version: int
    tables: tuple[str, ...]
    new: bool = field(default=True, compare=False)  # False: an equal question was asked before


class SeenVersion(msgspec.Struct, frozen=True):
    """A version of a dataset in the stream of its versions. `time` in milliseconds since 1970."""

    version: int
    time: Milliseconds


class TableStatus(msgspec.Struct, frozen=True):
    """The progress of a table. `batches` is known after the client sent the end."""

    batches: int | None
    arrived: int
    mapped: int


class JobStatus(msgspec.Struct, frozen=True):
    """The status of a job at one moment. `folds` counts partitions that are done."""

    run: str
    outcome: Outcome | None
    tables: dict[str, TableStatus]
    folds: dict[str, tuple[int, int]]
    results: tuple[str, ...]
    reads: dict[str, tuple[str, ...]] = {}  # query -> the tables that it needs
    options: Options = Options()  # for a client that resumes: it must cut the same batches
    queries: tuple[str, ...] = ()  # without the rejects report
    previews: tuple[str, ...] = ()  # queries that show rows before their table is complete
    application: str = ""
    created: float = 0.0  # seconds since 1970, UTC
    failed: dict[str, Reason] = {}  # finished queries that failed, and why
    growing: tuple[str, ...] = ()  # queries that have an answer so far
    small: dict[str, bytes] = {}  # whole results (outputs.py), for who asked; not all of them


class JobEntry(msgspec.Struct, frozen=True):
    """A job in a list. `created` is in seconds since 1970, UTC."""

    id: str
    state: State | Literal["running"]
    created: float
    application: str
    failed: tuple[str, ...] = ()  # failed queries, after the job is done


class TaskPage(msgspec.Struct, frozen=True):
    """Tasks of a run, in the order in which workers wrote them; `last` is the next `after`."""

    tasks: tuple[TaskFact, ...]
    last: str
    more: bool = False  # whether there are more now


class ResultColumn(msgspec.Struct, frozen=True):
    """A column of a result, with its Arrow type."""

    name: str
    type: str


class ResultAbout(msgspec.Struct, frozen=True):
    """What a result holds, without its rows."""

    query: str
    title: str
    rows: int
    bytes: int
    columns: tuple[ResultColumn, ...]


class SoFar(msgspec.Struct, frozen=True):
    """Rows of an answer that still grows, in the columns that are final.

    `covered` says of which tables how many of the first batches were read; it is empty as long as
    nothing is known. `rows` or `stream` (Arrow) are absent if the client knows as many batches.
    """

    run: str
    covered: dict[str, int] = {}
    total: int = 0  # rows so far, of which the first ones are here
    columns: tuple[ResultColumn, ...] = ()
    later: tuple[str, ...] = ()  # columns that come with the answer
    rows: Any = None
    stream: bytes | None = None


class PlanNode(msgspec.Struct, frozen=True):
    """A node of a plan's graph. `stage` names its rows in task facts, `sql` what it runs."""

    name: str
    lines: tuple[str, ...]
    shape: str
    group: str = ""
    sql: str = ""
    stage: str = ""


class PlanEdge(msgspec.Struct, frozen=True):
    """Rows go from `source` to `target`; a dotted edge carries only keys."""

    source: str
    target: str
    label: str = ""
    dotted: bool = False


class PlanGraph(msgspec.Struct, frozen=True):
    """The plan of one query."""

    title: str
    nodes: tuple[PlanNode, ...]
    edges: tuple[PlanEdge, ...]


class PlanPage(msgspec.Struct, frozen=True):
    """The plans of all queries of a job, by query."""

    queries: dict[str, PlanGraph]


class ServiceHealth(msgspec.Struct, frozen=True):
    """Whether the store or the broker answers this gateway, and how fast."""

    ok: bool
    seconds: float
    reason: str = ""


class ClusterPage(msgspec.Struct, frozen=True):
    """The cluster as one gateway sees it; `processes` is empty without medics."""

    gateway: str
    gateways: tuple[str, ...]
    admin: bool
    chaos: bool
    leader: str
    term: int
    medic: str
    processes: tuple[ProcessStatus, ...]
    lanes: dict[str, int]
    store: ServiceHealth
    broker: ServiceHealth


class SamplePage(msgspec.Struct, frozen=True):
    """Process samples, oldest first."""

    samples: tuple[ProcessSample, ...]


class StrikeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which process to hit, and how."""

    process: str
    incarnation: int
    fault: Literal["kill", "freeze"]


class StrikeReceipt(msgspec.Struct, frozen=True):
    """The process was hit, `at` seconds since 1970."""

    process: str
    incarnation: int
    at: float


class Used(msgspec.Struct, frozen=True):
    """How much of a quota an owner uses; None if it is not counted because there is no limit."""

    used: int | None
    most: int | None


class QuotaPage(msgspec.Struct, frozen=True):
    """Quotas by owner and name (formats/quotas.py), as one gateway knows them."""

    owners: dict[str, dict[str, Used]]


class JobPage(msgspec.Struct, frozen=True):
    """A page of jobs, the newest first. `next` is the `after` of the next page, None at the end."""

    jobs: tuple[JobEntry, ...]
    next: str | None
