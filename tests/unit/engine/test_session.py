"""A session keeps what it has read, and reads again only what has changed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caudal.application.adhoc import files_application
from caudal.duck.bind import TableLoad
from caudal.embedded.loading import Loader
from caudal.embedded.session import TableSession, open_session
from caudal.errors import ApplicationError, DataError, QueryError
from caudal.files.inputs import InputFile
from caudal.files.sources import Sources
from caudal.results.answers import TableProfile
from caudal.run_options import RunOptions, Silent


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of every table that is read."""
    found: list[str] = []
    load = Loader.load

    def noted(self: Loader, what: TableLoad, files: Sequence[InputFile]) -> TableProfile:
        paths = [file.place.path for file in files]
        found.extend(f"{path.parent.name}/{path.name}" for path in paths)
        return load(self, what, files)

    monkeypatch.setattr(Loader, "load", noted)
    return found


@pytest.fixture
def session() -> Iterator[TableSession]:
    with open_session("lexicon", RunOptions()) as found:
        yield found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "x.csv").write_text("n\n1\n2\n")
    (tmp_path / "b" / "x.csv").write_text("n\n30\n")
    return tmp_path


def asked(session: TableSession, data: Path, sql: str) -> list[dict[str, Any]]:
    app = files_application(sql, data)
    with session.stream(app, Sources(data), Silent()) as result:
        return [row for part in result.parts for row in part.to_pylist()]


def test_a_file_is_read_once_whatever_its_name_is(
    session: TableSession, data: Path, reads: list[str]
) -> None:
    both = "SELECT sum(a.n) + sum(b.n) AS s FROM 'a/x.csv' AS a, 'b/x.csv' AS b"
    assert asked(session, data, "SELECT sum(n) AS s FROM 'a/x.csv'") == [{"s": 3}]
    assert asked(session, data, both) == [{"s": 63}]
    assert asked(session, data, "SELECT sum(n) AS s FROM 'b/x.csv'") == [{"s": 30}]
    assert asked(session, data, "SELECT max(n) AS m FROM 'a/x.csv'") == [{"m": 2}]
    assert reads == ["a/x.csv", "b/x.csv"]


def test_a_file_that_changed_is_read_again(
    session: TableSession, data: Path, reads: list[str]
) -> None:
    select = "SELECT sum(n) AS s FROM 'a/x.csv'"
    assert asked(session, data, select) == [{"s": 3}]
    (data / "a" / "x.csv").write_text("n\n1\n2\n4\n")
    assert asked(session, data, select) == [{"s": 7}]
    assert reads == ["a/x.csv", "a/x.csv"]
    (data / "a" / "x.csv").unlink()
    with pytest.raises(DataError, match="no file"):
        asked(session, data, select)


def test_a_mistake_does_not_end_the_session(session: TableSession, data: Path) -> None:
    with pytest.raises(ApplicationError, match="nope"):
        asked(session, data, "SELECT nope FROM 'a/x.csv'")
    with pytest.raises(QueryError, match="Could not convert"):
        asked(session, data, "SELECT CAST('x' || n AS INTEGER) FROM 'a/x.csv'")
    with pytest.raises(ApplicationError, match="x does not exist"):
        asked(session, data, "SELECT * FROM x")
    assert asked(session, data, "SELECT count(*) AS n FROM 'a/x.csv'") == [{"n": 2}]


def test_rows_come_in_the_order_of_the_file(session: TableSession, data: Path) -> None:
    numbers = list(range(200_000))
    (data / "many.csv").write_text("n\n" + "\n".join(map(str, numbers)) + "\n")
    with session.stream(
        files_application("FROM 'many.csv'", data), Sources(data), Silent()
    ) as found:
        assert pa.concat_tables(found.parts).column("n").to_pylist() == numbers


def test_rows_that_are_not_read_stop_the_query(session: TableSession, data: Path) -> None:
    endless = files_application("SELECT i FROM range(1000000000000) AS t(i)", None)
    with session.stream(endless, Sources(data), Silent()) as found:
        assert next(found.parts).num_rows > 0
    assert asked(session, data, "SELECT 1 AS a") == [{"a": 1}]
