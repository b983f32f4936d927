"""What a gateway says of jobs, as its clients hear it (docs/formats/http.md)."""

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from caudal.formats.frame import Reason
from caudal.formats.job import Options
from caudal.formats.outcomes import Outcome, State


@dataclass(frozen=True)
class Receipt:
    """What a gateway confirms: the run, and the tables that the client must send."""

    run: str
    tables: tuple[str, ...]
    new: bool = field(default=True, compare=False)  # False: it was confirmed before


class TableStatus(msgspec.Struct, frozen=True):
    """`batches` is known once the client ended the table."""

    batches: int | None
    arrived: int
    mapped: int


class JobStatus(msgspec.Struct, frozen=True):
    """A moment in a job's life. `folds` counts partitions done."""

    run: str
    outcome: Outcome | None
    tables: dict[str, TableStatus]
    folds: dict[str, tuple[int, int]]
    results: tuple[str, ...]
    reads: dict[str, tuple[str, ...]] = {}  # by query: the tables that it waits for
    options: Options = Options()  # for a client that resumes: it must cut at the same places
    queries: tuple[str, ...] = ()  # without the rejects report
    previews: tuple[str, ...] = ()  # queries whose rows can be seen before their table is complete
    application: str = ""
    created: float = 0.0  # seconds since 1970, UTC
    failed: dict[str, Reason] = {}  # of the results: those that hold no rows, and why


class JobEntry(msgspec.Struct, frozen=True):
    """A job in a listing. `created` in seconds since 1970, UTC."""

    id: str
    state: State | Literal["running"]
    created: float
    application: str
    failed: tuple[str, ...] = ()  # queries, once it is done


class Used(msgspec.Struct, frozen=True):
    """How much of a quota an owner uses; None where nobody counts it, since nothing is bounded."""

    used: int | None
    most: int | None


class QuotaPage(msgspec.Struct, frozen=True):
    """Quotas by owner and name (formats/quotas.py), as one gateway sees them."""

    owners: dict[str, dict[str, Used]]


class JobPage(msgspec.Struct, frozen=True):
    """Some jobs by id; `next` is the `after` of the next page, None at the end."""

    jobs: tuple[JobEntry, ...]
    next: str | None
