"""The server of `caudal ui`, without a browser: who may ask, what is answered, what is kept."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from tests.harness.page_cluster import SCRIPT, write_films
from tests.harness.series_world import World

import caudal
from caudal.application import find_application
from caudal.cli.shell.loop import Shell
from caudal.cli.ui import session as ui_session
from caudal.cli.ui.series import SeriesRoom
from caudal.cli.ui.server import ui_application
from caudal.cli.ui.session import KEPT, UiSession
from caudal.cli.ui.shelf import ShelfRoom
from caudal.datasets.shelf import open_shelf
from caudal.embedded.dataset_session import DatasetSession, open_dataset_session
from caudal.embedded.session import open_session
from caudal.errors import UsageError
from caudal.files.sources import Sources
from caudal.run_options import RunOptions
from caudal.series import consolidate_all, ingest
from caudal.store.memory import MemoryStore

KEY = "a-key-of-this-start"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    write_films(tmp_path)
    app = find_application(str(tmp_path / "films"))
    with open_session("lexicon", RunOptions()) as session:
        shell = Shell(session, app, Sources(tmp_path / "data"), False, {}, quiet=True)
        headers = {"authorization": f"Bearer {KEY}", "host": "127.0.0.1:8419"}
        yield TestClient(
            ui_application(UiSession(shell), KEY), "http://127.0.0.1:8419", headers=headers
        )


def test_tables_are_told_for_completion(client: TestClient) -> None:
    told = client.get("/ui").json()
    assert told["application"] == "films"
    assert list(told["tables"]["films"]) == ["id", "title", "year", "score"]
    assert "sentiment" in told["functions"]


def test_a_select_and_its_rows_by_page(client: TestClient) -> None:
    answer = client.post("/ui/sql", json={"sql": "SELECT title, id FROM films ORDER BY id;"}).json()
    assert (answer["rows"], answer["cut"]) == (4, False)
    assert answer["rejects"] == ["films: 1 row: id is not a number (line 6)"]
    path = f"/ui/answers/{answer['id']}"
    assert client.get(f"{path}?offset=0&limit=1").json() == [{"title": SCRIPT, "id": 1}]
    assert client.get(path, headers={"accept": "text/csv"}).text.splitlines()[0] == "title,id"


def test_parameters(client: TestClient) -> None:
    body = {"sql": "SELECT id FROM films WHERE score > $least", "parameters": {"least": 8}}
    answer = client.post("/ui/sql", json=body).json()
    assert client.get(f"/ui/answers/{answer['id']}").json() == [{"id": 2}]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT nothing FROM films", "line 1: SELECT nothing"),
        ("SELECT 1; SELECT 2", "write one SELECT"),
        ("", "write one SELECT"),
        (".tables", "write one SELECT"),
        ("DROP TABLE films", "SELECT"),
    ],
)
def test_a_mistake_says_what_is_wrong(client: TestClient, sql: str, said: str) -> None:
    answer = client.post("/ui/sql", json={"sql": sql})
    assert answer.status_code == 422
    assert said in answer.json()["error"]["message"]


def test_a_plan(client: TestClient) -> None:
    plan = client.post("/ui/explain", json={"sql": "SELECT id FROM films"}).json()
    assert "table films" in [node["name"] for node in plan["nodes"]]


def test_nothing_is_told_without_the_key(client: TestClient) -> None:
    for path in ("/ui", "/ui/answers/1"):
        assert client.get(path, headers={"authorization": "Bearer x"}).status_code == 401
    wrong = client.post("/ui/sql", json={"sql": "SELECT 1"}, headers={"authorization": ""})
    assert wrong.status_code == 401
    assert client.get("/", headers={"authorization": ""}).status_code == 200


def test_other_names_are_not_answered(client: TestClient) -> None:
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421


def test_few_answers_are_kept_and_long_ones_are_cut(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = client.post("/ui/sql", json={"sql": "SELECT 1 AS a"}).json()["id"]
    for _ in range(KEPT):
        client.post("/ui/sql", json={"sql": "SELECT 1 AS a"})
    assert client.get(f"/ui/answers/{first}").status_code == 422
    monkeypatch.setattr(ui_session, "MOST_ROWS", 10)
    answer = client.post("/ui/sql", json={"sql": "SELECT * FROM range(25)"}).json()
    assert (answer["rows"], answer["cut"]) == (10, True)
    assert pa.types.is_int64(pa.type_for_alias(answer["columns"][0]["type"]))


def test_a_body_that_is_no_select(client: TestClient) -> None:
    assert client.post("/ui/sql", json={"sql": 1}).status_code == 400
    assert client.post("/ui/sql", content=b"x" * (1 << 21)).status_code == 413


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[TestClient]:
    """A session over a dataset that takes files."""
    write_films(tmp_path)
    app = find_application(str(tmp_path / "films"))
    place = str(tmp_path / "shelf")
    caudal.load(str(tmp_path / "films"), data=tmp_path / "data", to=place)

    def opened() -> AbstractContextManager[DatasetSession]:
        return open_dataset_session(app, open_shelf(place, None), RunOptions())

    spool = tmp_path / "spool"
    spool.mkdir()
    with contextlib.closing(ShelfRoom(app, place, RunOptions(), spool, opened)) as room:
        shell = Shell(room.session(), app, Sources(tmp_path), False, {}, quiet=True)
        headers = {"authorization": f"Bearer {KEY}", "host": "127.0.0.1:8419"}
        application = ui_application(UiSession(shell, room), KEY)
        yield TestClient(application, "http://127.0.0.1:8419", headers=headers)
    assert list(spool.iterdir()) == []


def count(client: TestClient, table: str) -> int:
    body = {"sql": f"SELECT count(*) AS n FROM {table}"}
    answer = client.post("/ui/sql", json=body).json()
    return int(client.get(f"/ui/answers/{answer['id']}").json()[0]["n"])


def test_a_dataset_tells_its_versions(shelf: TestClient) -> None:
    assert [one["rows"] for one in shelf.get("/ui").json()["versions"]] == [4, 0]
    assert (count(shelf, "films"), count(shelf, "rejects")) == (4, 1)


def test_a_file_is_loaded_part_by_part(shelf: TestClient) -> None:
    text = b"id,title,year,score\n5,Fifth,2005,5\ny,Broken,2006,6\n"
    for offset in range(0, len(text), 20):
        part = text[offset : offset + 20]
        sent = shelf.put(f"/ui/upload?name=more.csv&offset={offset}", content=part)
        assert sent.json() == {"size": offset + len(part)}
    loaded = shelf.post("/ui/load?name=more.csv&table=films").json()
    assert loaded == {"version": 2, "rows": 1, "rejected": 1, "skipped": ""}
    assert (count(shelf, "films"), count(shelf, "rejects")) == (5, 2)
    assert shelf.get("/ui").json()["versions"][0]["number"] == 2
    shelf.put("/ui/upload?name=same.csv&offset=0", content=text)
    again = shelf.post("/ui/load?name=same.csv&table=films").json()
    assert again["skipped"] == "version 2 loaded it as more.csv"


def test_a_part_that_does_not_follow_is_refused(shelf: TestClient) -> None:
    shelf.put("/ui/upload?name=a.csv&offset=0", content=b"id,title\n")
    for path in ("name=a.csv&offset=4", "name=b.csv&offset=9", "name=a.csv&offset=x"):
        assert shelf.put(f"/ui/upload?{path}", content=b"1").status_code in (400, 422)
    assert shelf.post("/ui/load?name=b.csv&table=films").status_code == 422
    assert shelf.post("/ui/load?name=a.csv&table=nothing").status_code == 422
    assert shelf.put("/ui/upload?name=../../x.csv&offset=0", content=b"id,title\n").is_success
    assert shelf.post("/ui/load?name=../../x.csv&table=films").status_code == 422  # columns


def test_files_are_not_taken_without_a_dataset(client: TestClient) -> None:
    assert client.put("/ui/upload?name=a.csv&offset=0", content=b"x").status_code == 404
    assert client.post("/ui/load?name=a.csv&table=films").status_code == 422
    assert client.get("/ui/series").status_code == 404


def test_series_are_read_as_of_a_version(client: TestClient, tmp_path: Path) -> None:
    world = World(tmp_path)
    catalog = world.catalog(MemoryStore())
    for values in ([1.0, 2.0], [1.0, 3.0]):
        days = [("2024-02-01", values[0], 0.5), ("2024-03-01", values[1], 0.5)]
        ingest(catalog, world.config, world.source("rates", days))
    consolidate_all(catalog, world.config)
    room = SeriesRoom(catalog)
    (listed,) = room.listing()
    assert (listed.name, listed.version, listed.problem) == ("little", 2, "")
    found = room.contents("little")
    assert [(one.month, one.state) for one in found.months] == [
        ("2024-02", "fresh"),
        ("2024-03", "fresh"),
    ]
    assert [one.number for one in found.versions] == [2, 1]
    code = found.codes[0]
    assert room.values("little", code, None).values == [1.0, 3.0]
    assert room.values("little", code, 1).values == [1.0, 2.0]
    with pytest.raises(UsageError, match="no dataset"):
        room.contents("../little")
