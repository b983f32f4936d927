"""The report of a job as one HTML file: the page's own code, with the data in it.

`web/src/filling.ts` does the same in a browser. In the data `<` is written as an escape, so that
no value can end the element that holds it.
"""

import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from caudal.cli.report_file import write_whole
from caudal.formats.outcomes import Outcome
from caudal.formats.replies import JobStatus, PlanGraph, ResultAbout, ResultColumn
from caudal.results.answers import Answers, Result
from caudal.results.rejects import RejectReason, Rejects
from caudal.results.values import json_text

REPORTED_ROWS = 2000  # of each answer
_PLACE = b"/*data*/"


def filled(data: Mapping[str, Any]) -> bytes:
    """Return the file of a report with this data."""
    page = resources.files("caudal.gateway").joinpath("page", "report.html").read_bytes()
    text = msgspec.json.encode(data).replace(b"<", b"\\u003c")
    before, _, after = page.partition(_PLACE)
    return before + text + after


def write_report(path: Path, data: Mapping[str, Any]) -> None:
    """Write the file whole or not at all."""
    write_whole(path, filled(data))


def run_data(application: str, answers: Answers, plans: Mapping[str, PlanGraph]) -> dict[str, Any]:
    """Return the data of a run without a cluster."""
    now = time.time()
    failed = {name: str(error) for name, error in answers.failures.items()}
    status = JobStatus(
        run="",
        outcome=Outcome("done", "", now, failed),
        tables={},
        folds={},
        results=tuple(answers),
        queries=tuple(answers),
        application=application,
        created=now - answers.seconds,
        failed=failed,
    )
    return {
        "job": "",
        "made": now,
        "status": status,
        "plans": plans,
        "tasks": [],
        "samples": [],
        "results": {name: _result(one) for name, one in answers.results.items()},
        "rejects": _rejects(answers.rejects),
    }


def _result(result: Result) -> dict[str, Any]:
    table = result.table
    columns = tuple(ResultColumn(one.name, str(one.type)) for one in table.schema)
    about = ResultAbout(result.name, result.title, table.num_rows, table.nbytes, columns)
    rows = result.head(REPORTED_ROWS).rows()
    return {
        "about": {**msgspec.structs.asdict(about), "seconds": result.seconds},
        "rows": msgspec.Raw(json_text(rows, None).encode()),
    }


def _rejects(rejects: Rejects) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "table": one.table,
            "reason": one.reason,
            "rows": one.count,
            "first": [_place(one, number) for number in range(len(one.first))],
        }
        for one in rejects
    ]
    kept = rejects.repaired.items()
    return found + [{"table": table, "reason": None, "rows": rows} for table, rows in kept]


def _place(found: RejectReason, number: int) -> dict[str, str | int]:
    file, line = found.first[number]
    record = found.records.get(number)
    place: dict[str, str | int] = {"file": file, "line": line}
    return place if record is None else {**place, "record": record}
