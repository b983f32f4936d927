"""`caudal submit --out`: rows of answers that still grow are in a file until the answer is."""

import threading
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from tests.harness.memory_cluster import Cluster
from tests.harness.waiting import GUARD_SECONDS
from tests.unit.client.conftest import PARAMETERS

from caudal.cli import submit_progress
from caudal.cli.destination import Destination
from caudal.cli.formats import Format
from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.client import growing
from caudal.formats.batch import BatchHeader
from caudal.gateway import growth

WORDS = ["submit", "books", "--batch-size", "4KiB", "-q", "q2", "-q", "q3", "-q", "q5"]
WORDS += [word for name, value in PARAMETERS.items() for word in ("--param", f"{name}={value}")]
LAST = 8  # batches of reviews that come before the client waits for rows


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "REST", 0)
    monkeypatch.setattr(growth, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(growing, "_PAUSE_SECONDS", 0.02)


class Watched(submit_progress.SubmitProgress):
    """Waits, before a table ends, until rows of the query that needs it were written."""

    seen: ClassVar[dict[str, str]] = {}
    written: ClassVar[threading.Condition] = threading.Condition()

    def _write_partial(self, query: str, rows: pa.Table) -> None:
        super()._write_partial(query, rows)
        path = self._destination.partial_path(query)
        assert path is not None
        with self.written:
            self.seen[query] = path.read_text()
            self.written.notify_all()

    def sent(self, table: str, batch: BatchHeader) -> None:
        super().sent(table, batch)
        if (table, batch.number) in (("books", 0), ("reviews", LAST)):
            query = "q2" if table == "books" else "q3"
            with self.written:
                assert self.written.wait_for(lambda: self._has_rows(query), GUARD_SECONDS)
            self.waited(query)

    def _has_rows(self, query: str) -> bool:
        return self.seen.get(query, "").count("\n") > 1

    def waited(self, query: str) -> None:
        """Called before the table ends."""


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    Watched.seen.clear()
    monkeypatch.setattr("caudal.cli.submit.SubmitProgress", Watched)
    return Watched


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_partial_files_hold_rows_of_the_answer_and_go(
    one: Cluster, books: Path, tmp_path: Path, watched: type[Watched]
) -> None:
    for name in ("q2", "q5"):
        (tmp_path / f"{name}.partial.csv").write_text("of a client that was killed\n")
    assert main([*WORDS, "-d", str(books), "-g", one.gateway, "-o", str(tmp_path)]) == 0
    assert names(tmp_path) == ["q2.csv", "q3.csv", "q5.csv"]
    assert set(watched.seen) == {"q2", "q3"}
    for query, text in watched.seen.items():
        head, *rows = text.splitlines()
        answer = (tmp_path / f"{query}.csv").read_text().splitlines()
        assert head == answer[0]
        assert set(rows) <= set(answer)


def test_a_job_that_does_not_end_well_leaves_none(
    one: Cluster, books: Path, tmp_path: Path, watched: type[Watched],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def cancel(self: Watched, query: str) -> None:
        self._gateways.cancel(self.job_id)

    monkeypatch.setattr(Watched, "waited", cancel)
    words = [*WORDS, "-d", str(books), "-g", one.gateway, "-o", str(tmp_path)]
    assert main(words) == ExitStatus.JOB
    assert "q2" in watched.seen
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("destination", "name"),
    [
        (Destination(Format.CSV, folder=Path("out")), "out/q2.partial.csv"),
        (Destination(Format.PARQUET, folder=Path("out")), "out/q2.partial.csv"),
        (Destination(Format.CSV, file=Path("a/best.csv")), "a/best.partial.csv"),
        (Destination(Format.JSON, file=Path("best.json")), None),
        (Destination(Format.CSV, file=Path("/dev/null")), None),
        (Destination(Format.CSV), None),
    ],
)
def test_where_they_are(destination: Destination, name: str | None) -> None:
    found = destination.partial_path("q2")
    assert (None if found is None else str(found)) == name
