"""Result objects as answers, equal to those of a local run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from caudal.errors import CaudalError, FormatError, JobError, QueryError, RejectedRowError
from caudal.formats import outputs
from caudal.formats.keys import REJECTS
from caudal.formats.outcomes import STRICT, Outcome
from caudal.model import RejectedRow
from caudal.results.answers import Answers, Result, one_line
from caudal.results.failures import settled
from caudal.results.rejects import RejectReason, Rejects

_PLACES_KEPT = 5  # of each reason, as in a local run


def result_of(name: str, data: bytes, seconds: float = 0.0) -> Result:
    """Return one result; raise QueryError if the query failed."""
    index, rows = _decoded(data, f"the result of {name}")
    return Result(name, index.title, rows, seconds)


def answers_of(
    results: Mapping[str, bytes], queries: Iterable[str], seconds: float = 0.0
) -> Answers:
    """Return all results of a job, in the order of its queries, as a local run does."""
    found: dict[str, Result] = {}
    errors: dict[str, QueryError] = {}
    for name in queries:
        try:
            found[name] = result_of(name, results[name])
        except QueryError as error:
            errors[name] = error
    rejects = rejects_of(results[REJECTS])
    return Answers(found, rejects, seconds=seconds, failures=settled(found, errors))


def rejects_of(data: bytes) -> Rejects:
    """Return the rejects report, with the first places of each reason."""
    rejects = Rejects()
    for row in _report_rows(data):
        if row["reason"] is None:
            rejects.note_repaired(row["table"], row["rows"])
        else:
            places = [(place["file"], place["line"]) for place in row["first"][:_PLACES_KEPT]]
            rejects.enter(RejectReason(row["table"], row["reason"], row["rows"], places))
    return rejects


def every_reject(data: bytes, tables: Sequence[str]) -> list[RejectedRow]:
    """Return the rows that a report names, in the order of tables, files and lines."""
    rows = [
        RejectedRow(row["table"], place["file"], place["line"], row["reason"])
        for row in _report_rows(data)
        for place in row["first"]
    ]
    if strange := {row.table for row in rows}.difference(tables):
        raise FormatError(f"the rejects report names an unknown table {min(strange)[:40]!r}")
    return sorted(rows, key=lambda row: (tables.index(row.table), row.file, row.line))


def _report_rows(data: bytes) -> list[dict[str, Any]]:
    table = _decoded(data, "the rejects report")[1]
    if table.schema != outputs.REPORT:
        raise FormatError("the rejects report has unknown columns")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _decoded(data: bytes, name: str) -> tuple[outputs.ResultHeader, pa.Table]:
    """Decode a result from the network and check that its parts are consistent."""
    try:
        index, rows = outputs.decode_result(data, name)
        rows.validate(full=True)
    except QueryError as error:
        raise QueryError(one_line(str(error))) from None
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{name} is not a valid table: {error}") from error
    return index, rows


def error_of_outcome(job_id: str, outcome: Outcome) -> CaudalError:
    """Return the error for a job that ended without answers."""
    if outcome.reason.startswith(STRICT):
        return RejectedRowError(outcome.reason.removeprefix(STRICT))
    why = f": {outcome.reason}" if outcome.reason else ""
    return JobError(f"job {job_id} is {outcome.state}{why}")
