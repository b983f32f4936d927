"""The answers of a gateway about jobs (docs/formats/http.md)."""

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from caudal.formats.frame import Reason
from caudal.formats.job import Options
from caudal.formats.outcomes import Outcome, State


@dataclass(frozen=True)
class Receipt:
    """A gateway's confirmation: the run, and the tables that the client must send."""

    run: str
    tables: tuple[str, ...]
    new: bool = field(default=True, compare=False)  # False: it was confirmed before


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


class JobEntry(msgspec.Struct, frozen=True):
    """A job in a list. `created` is in seconds since 1970, UTC."""

    id: str
    state: State | Literal["running"]
    created: float
    application: str
    failed: tuple[str, ...] = ()  # failed queries, after the job is done


class Used(msgspec.Struct, frozen=True):
    """How much of a quota an owner uses; None if it is not counted because there is no limit."""

    used: int | None
    most: int | None


class QuotaPage(msgspec.Struct, frozen=True):
    """Quotas by owner and name (formats/quotas.py), as one gateway knows them."""

    owners: dict[str, dict[str, Used]]


class JobPage(msgspec.Struct, frozen=True):
    """A page of jobs, ordered by id. `next` is the `after` of the next page, None at the end."""

    jobs: tuple[JobEntry, ...]
    next: str | None
