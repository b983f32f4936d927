"""One SELECT over small tables, in the sandbox of workers, with bounds on its answer."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from caudal.duck.sandbox import Sandbox, SandboxLimits, Types
from caudal.errors import MemoryExceededError, QueryError, UsageError
from caudal.formats.streams import read_rows

MOST_ROWS = 10_000  # of an answer
MOST_ANSWER_BYTES = 6 << 20
CPU_SECONDS = 10
_LIMITS = SandboxLimits(memory_bytes=256 << 20, seconds=float(CPU_SECONDS))


@dataclass(frozen=True)
class SelectedRows:
    """The first rows of an answer, and whether there were more."""

    rows: pa.Table
    cut: bool


def select_rows(sql: str, relations: Mapping[str, pa.Table]) -> SelectedRows:
    """Return the rows of a SELECT. Raise QueryError with the place of a mistake."""
    with Sandbox(_LIMITS, types=Types.PLAIN) as sandbox:
        rows = _selected(sandbox, sql, relations)
    some = rows.slice(0, MOST_ROWS).combine_chunks()
    if some.nbytes > MOST_ANSWER_BYTES:
        raise UsageError(
            f"the answer has more than {MOST_ANSWER_BYTES >> 20} MiB: select fewer columns"
        )
    return SelectedRows(some, rows.num_rows > MOST_ROWS)


def select_streams(sql: str, streams: Mapping[str, bytes]) -> SelectedRows:
    """Do the same over Arrow streams, whose size the caller has checked."""
    return select_rows(sql, {name: read_rows(rows, name) for name, rows in streams.items()})


def _selected(sandbox: Sandbox, sql: str, relations: Mapping[str, pa.Table]) -> pa.Table:
    try:
        return sandbox.select(sql, relations)
    except MemoryExceededError:
        raise
    except QueryError as error:
        place = sandbox.place_of_mistake(sql, relations)
        raise QueryError(f"{error}\n{place}".rstrip()) from error
