"""Queries that get rows while files are read: the same rows as over whole tables, and no more of
the files than they need."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from caudal.application import examine, sniff
from caudal.application.adhoc import files_application
from caudal.duck.database import open_database
from caudal.duck.describe import create_empty, empty_schema, read_by
from caudal.duck.one_pass import Passes, passes_of
from caudal.embedded import engine, loading
from caudal.embedded.engine import stream
from caudal.embedded.session import open_session
from caudal.errors import DataError, QueryError, RejectedRowError
from caudal.files.pieces import FilePiece, pieces
from caudal.files.sources import Sources
from caudal.kernels.sentiment import load_model
from caudal.model import ADHOC
from caudal.results.answers import Answers
from caudal.run_options import RunOptions, Silent

SAMPLED = 500  # rows from which types are inferred
ROWS = 2_000
BATCH_BYTES = 5_000
BAD = (1_500, 1_700)

KNOWN = {
    "FROM t": Passes.ONE,
    "SELECT a + 1 FROM t": Passes.ONE,
    "SELECT a FROM t WHERE a > 1": Passes.ONE,
    "SELECT a FROM t WHERE a > 1 LIMIT 5": Passes.ONE,
    "SELECT unnest(l) FROM t LIMIT 5": Passes.ONE,
    "SELECT * FROM (SELECT a FROM t LIMIT 3) WHERE a > 1": Passes.ONE,
    "SELECT a, sentiment(s) FROM t LIMIT 5": Passes.FIRST_ROWS,
    "SELECT a FROM t LIMIT 5 OFFSET 3": Passes.FIRST_ROWS,
    "SELECT a FROM t LIMIT 0": Passes.FIRST_ROWS,
    "SELECT DISTINCT a FROM t LIMIT 5": Passes.MANY,
    "SELECT a FROM t ORDER BY a LIMIT 5": Passes.MANY,
    "SELECT count(*) FROM t LIMIT 5": Passes.MANY,
    "SELECT a, row_number() OVER () FROM t LIMIT 5": Passes.MANY,
    "SELECT a FROM t LIMIT 10%": Passes.MANY,
    "SELECT a FROM t LIMIT (SELECT 3)": Passes.MANY,
    "SELECT a FROM t USING SAMPLE 3": Passes.MANY,
    "SELECT a FROM t TABLESAMPLE 10%": Passes.MANY,
    "SELECT a FROM t WHERE a IN (SELECT a FROM t) LIMIT 5": Passes.MANY,
    "SELECT x.a FROM t x, t y LIMIT 5": Passes.MANY,
    "SELECT a FROM t UNION ALL SELECT a FROM t LIMIT 5": Passes.MANY,
    "WITH x AS (FROM t) SELECT a FROM x LIMIT 5": Passes.MANY,
    "SELECT 1 LIMIT 5": Passes.MANY,
}

QUERIES = (
    "SELECT * FROM 'x.csv'",
    "SELECT id, upper(name) AS shout FROM 'x.csv' WHERE price > 50",
    "SELECT id FROM 'x.csv' WHERE name = 'name 7' LIMIT 3",
    "SELECT * FROM 'x.csv' LIMIT 5 OFFSET 1498",
    "SELECT * FROM 'x.csv' LIMIT 0",
    "SELECT id FROM 'x.csv' WHERE false",
    "SELECT id, unnest(tags) AS tag FROM 'x.csv' LIMIT 700",
    "SELECT id, sentiment(name) AS mood FROM 'x.csv' WHERE id % 2 = 0 LIMIT 9",
    "SELECT id::HUGEINT * 10::HUGEINT ** 30 AS wide, id::UTINYINT AS small, {'a': price} AS s, "
    "MAP {name: day} AS m, md5(name)::UUID AS u, INTERVAL (id) DAY AS i, day::TIMESTAMPTZ AS z, "
    "name::BLOB AS b, TIME '10:00:00' AS c FROM 'x.csv' WHERE id < 250 LIMIT 200",
)


@pytest.fixture(autouse=True)
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sniff, examine):
        monkeypatch.setattr(module, "SAMPLED_ROWS", SAMPLED)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("passing")
    (folder / "x.csv").write_text(text())
    (folder / "x.csv.gz").write_bytes(gzip.compress(text().encode()))
    return folder


def text() -> str:
    lines = ["id,name,price,day,at,ok,tags"]
    lines += [
        f"{'bad' if row in BAD else row},name {row % 97},{row % 100}.5,2024-01-{row % 28 + 1:02d},"
        f"2024-01-01T10:11:12+0{row % 9}:00,{'true' if row % 3 else 'false'},"
        f"\"['a', 'b{row % 5}']\""
        for row in range(ROWS)
    ]
    return "\n".join(lines) + "\n"


def asked(data: Path, sql: str, options: RunOptions) -> Answers:
    return engine.run(files_application(sql, data), Sources(data), options=options)


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of the pieces that were cut so far."""
    seen: list[str] = []

    def counted(*given: object, **more: object) -> Iterator[FilePiece]:
        for piece in pieces(*given, **more):  # type: ignore[arg-type]
            seen.append(piece.file)
            yield piece

    monkeypatch.setattr(loading, "pieces", counted)
    return seen


def test_only_known_operators_over_one_scan_are_one_pass() -> None:
    with open_database(load_model("lexicon")) as database, empty_schema(database) as cursor:
        create_empty(cursor, "t", {"a": "INTEGER", "l": "VARCHAR[]", "s": "VARCHAR"})
        found = {sql: passes_of(read_by(cursor, sql, "").plan) for sql in KNOWN}
    assert found == KNOWN


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_whole_tables(data: Path, sql: str) -> None:
    app, sources = files_application(sql, data), Sources(data)
    whole = engine.run(app, sources, options=RunOptions(reject_sink=lambda row: None))
    assert whole.rejects.total == len(BAD)
    assert not whole.rejects.unread
    for threads in (1, 3):
        options = RunOptions(threads=threads, batch_bytes=BATCH_BYTES)
        passed = engine.run(app, sources, options=options)
        assert passed[ADHOC].table.equals(whole[ADHOC].table)
        assert passed[ADHOC].table.schema.equals(whole[ADHOC].table.schema)
        if not passed.rejects.unread:
            assert passed.rejects.counts() == whole.rejects.counts()


def test_limit_ends_the_reading_and_the_report_says_so(data: Path, cut: list[str]) -> None:
    options = RunOptions(threads=1, batch_bytes=BATCH_BYTES)
    first = asked(data, "SELECT * FROM 'x.csv' LIMIT 5", options)
    assert len(first[ADHOC]) == 5
    assert not first.rejects
    (told,) = first.rejects.unread
    assert told.startswith("x: the answer needed 0.0 of 0.1 MB")
    assert "not counted" in repr(first.rejects)
    few = len(cut)
    asked(data, "SELECT * FROM 'x.csv'", options)
    assert few < 6 < (len(cut) - few)


def test_a_limit_at_the_end_of_the_file_has_read_all(data: Path) -> None:
    sql = f"SELECT id FROM 'x.csv' LIMIT {ROWS - len(BAD)}"
    found = asked(data, sql, RunOptions(batch_bytes=BATCH_BYTES))
    assert len(found[ADHOC]) == ROWS - len(BAD)
    assert not found.rejects.unread
    assert found.rejects.total == len(BAD)


def test_rows_that_nobody_takes_are_not_read(data: Path, cut: list[str]) -> None:
    options = RunOptions(threads=1, batch_bytes=BATCH_BYTES)
    app = files_application("SELECT * FROM 'x.csv.gz'", data)
    with stream(app, Sources(data), ADHOC, {}, options, Silent()) as result:
        assert cut  # the first rows are there, and the other files of the run were not opened
    some = len(cut)
    with stream(app, Sources(data), ADHOC, {}, options, Silent()) as result:
        assert sum(part.num_rows for part in result.parts) == ROWS - len(BAD)
    assert some < 6 < len(cut) - some


def test_strict_runs_and_lists_of_rejected_rows_read_everything(data: Path) -> None:
    sql = "SELECT id FROM 'x.csv' LIMIT 1"
    with pytest.raises(RejectedRowError, match="id is not an integer"):
        asked(data, sql, RunOptions(strict=True, batch_bytes=BATCH_BYTES))
    lines: list[int] = []
    asked(data, sql, RunOptions(reject_sink=lambda row: lines.append(row.line)))
    assert lines == [row + 2 for row in BAD]


@pytest.mark.one_in(3)
def test_an_error_while_reading_is_told_as_it_is(data: Path, tmp_path: Path) -> None:
    header, _, body = (data / "x.csv").read_bytes().partition(b"\n")
    packed = gzip.compress(header + b"\n" + 30 * body)
    (tmp_path / "x.csv.gz").write_bytes(packed[:-1000])
    options = RunOptions(batch_bytes=BATCH_BYTES)
    with pytest.raises(DataError, match=r"cannot read .*x\.csv\.gz"):
        asked(tmp_path, "SELECT * FROM 'x.csv.gz'", options)
    assert len(asked(tmp_path, "SELECT * FROM 'x.csv.gz' LIMIT 2", options)[ADHOC]) == 2


def test_an_error_of_the_query_fails_the_query(data: Path) -> None:
    sql = "SELECT CAST(name AS INTEGER) AS n FROM 'x.csv'"
    with pytest.raises(QueryError, match="the query: Could not convert"):
        asked(data, sql, RunOptions(batch_bytes=BATCH_BYTES))


def test_a_session_reads_first_rows_first_and_everything_once(data: Path, cut: list[str]) -> None:
    options = RunOptions(threads=1, batch_bytes=BATCH_BYTES)

    def answer(sql: str) -> pa.Table:
        with session.stream(files_application(sql, data), Sources(data), Silent()) as result:
            return pa.concat_tables(result.parts)

    with open_session("lexicon", options) as session:
        assert answer("SELECT id FROM 'x.csv' LIMIT 3")["id"].to_pylist() == [0, 1, 2]
        first = len(cut)
        answer("SELECT count(*) FROM 'x.csv'")
        whole = len(cut) - first
        assert first < 6 < whole
        answer("SELECT id FROM 'x.csv' LIMIT 3")
        assert len(cut) == first + whole
