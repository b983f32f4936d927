"""Reports of runs: one file that holds its data safely, or one line that says why not."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from caudal.cli.report_file import require_writable, write_whole
from caudal.cli.report_page import REPORTED_ROWS, filled, run_data
from caudal.errors import QueryError, UsageError
from caudal.model import RejectedRow
from caudal.results.answers import Answers, Result
from caudal.results.rejects import Rejects

BAD = "</script><script>alert(1)</script>"


def answers() -> Answers:
    rejects = Rejects()
    rejects.add([RejectedRow("t", "t.csv", line, "wrong") for line in (7, 9)], {7: BAD})
    rows = pa.table({"title": [BAD] * (REPORTED_ROWS + 1)})
    failures = {"q2": QueryError("division by zero")}
    return Answers({"q1": Result("q1", "All", rows, 0.5)}, rejects, failures=failures)


def data_of(page: bytes) -> dict[str, object]:
    """What the page reads from its own element."""
    text = page.decode().partition('id="data">')[2].partition("</script>")[0]
    found: dict[str, object] = json.loads(text)
    return found


def test_no_value_ends_the_element_that_holds_it() -> None:
    page = filled(run_data("books", answers(), {}))
    assert BAD.encode() not in page
    found = data_of(page)
    assert found["results"]["q1"]["rows"][0] == {"title": BAD}  # type: ignore[index]
    assert found["rejects"][0]["first"][0]["record"] == BAD  # type: ignore[index]


def test_a_report_names_rejects_failures_and_what_was_cut() -> None:
    found = run_data("books", answers(), {})
    assert found["rejects"][0]["first"] == [
        {"file": "t.csv", "line": 7, "record": BAD},
        {"file": "t.csv", "line": 9},
    ]
    assert found["status"].failed == {"q2": "division by zero"}
    about = found["results"]["q1"]["about"]
    assert (about["rows"], about["seconds"]) == (REPORTED_ROWS + 1, 0.5)
    assert len(json.loads(bytes(found["results"]["q1"]["rows"]))) == REPORTED_ROWS


def test_where_it_cannot_be_written_is_said_before_the_run(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "x.html"):
        with pytest.raises(UsageError, match="cannot write"):
            require_writable(path)
    require_writable(tmp_path / "x.html")


def test_a_report_is_written_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "x.html", b"new")
    assert [one.name for one in tmp_path.iterdir()] == ["x.html"]
    with pytest.raises(UsageError, match="cannot write"):
        write_whole(tmp_path / "missing" / "x.html", b"new")
