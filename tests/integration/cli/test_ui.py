"""The server of `caudal ui`, without a browser: who may ask, what is answered, what is kept."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from tests.harness.page_cluster import SCRIPT, write_films

import caudal
from caudal.application import find_application
from caudal.cli.shell.loop import Shell
from caudal.cli.ui import session as ui_session
from caudal.cli.ui.server import ui_application
from caudal.cli.ui.session import KEPT, UiSession
from caudal.datasets.shelf import open_shelf
from caudal.embedded.dataset_session import open_dataset_session
from caudal.embedded.session import open_session
from caudal.files.sources import Sources
from caudal.run_options import RunOptions

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


def test_the_profile_of_a_table(client: TestClient) -> None:
    found = client.get("/ui/tables/films").json()
    assert found["rows"] == 4
    columns = {one["name"]: one for one in found["columns"]}
    assert (columns["year"]["least"], columns["year"]["most"]) == ("1995", "2003")
    assert sum(columns["score"]["bins"]) == 4
    assert columns["score"]["bins"][0] == columns["score"]["bins"][-1] == 1
    assert columns["title"]["bins"] == []
    assert client.get("/ui/tables/nothing").status_code == 422


def test_a_dataset_tells_its_versions(tmp_path: Path) -> None:
    write_films(tmp_path)
    app = find_application(str(tmp_path / "films"))
    caudal.load(str(tmp_path / "films"), data=tmp_path / "data", to=tmp_path / "shelf")
    shelf = open_shelf(str(tmp_path / "shelf"), None)
    with open_dataset_session(app, shelf, RunOptions()) as session:
        shell = Shell(session, app, Sources(tmp_path), False, {}, quiet=True)
        asked = UiSession(shell)
        assert [one["rows"] for one in asked.about()["versions"]] == [4, 0]
        assert asked.profile("films").rows == 4
        assert asked.profile("rejects").rows == 1
