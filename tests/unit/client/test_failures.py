"""One query of several fails on a cluster: words, files and status are those of `caudal run`."""

from pathlib import Path

import httpx
import msgspec
import pytest
from tests.harness.memory_cluster import Cluster

import caudal
from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.errors import QueryError
from caudal.formats.replies import JobStatus
from caudal.results.answers import Answers

APP = """
title = "Of three queries one fails"
[[tables]]
name = "t"
files = ["t.csv"]
columns = ["k", "v"]
"""
QUERIES = {
    "first": "-- Sums\nSELECT k, sum(v) AS total FROM t GROUP BY k ORDER BY k",
    "broken": "-- Numbers\nSELECT k, CAST(max(k) AS INTEGER) AS n FROM t GROUP BY k ORDER BY k",
    "last": "-- Rows\nSELECT count(*) AS n FROM t",
}
REASON = "Could not convert string 'a' to INT32"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failing")
    write_app(folder)
    return folder


def write_app(folder: Path, rows: int = 200) -> None:
    """An application and its data, in one folder."""
    (folder / "app.toml").write_text(APP)
    for room in ("tables", "queries"):
        (folder / room).mkdir()
    (folder / "tables" / "t.sql").write_text("SELECT k, to_integer(v) AS v FROM raw")
    for name, sql in QUERIES.items():
        (folder / "queries" / f"{name}.sql").write_text(sql)
    (folder / "t.csv").write_text("k,v\n" + "".join(f"{'aab'[n % 3]},{n}\n" for n in range(rows)))


def check(answers: Answers, expected: Answers) -> None:
    assert list(answers.results) == list(expected.results) == ["first", "last"]
    for name, result in expected.results.items():
        assert answers[name].table.equals(result.table)
    assert list(answers.failures) == ["broken"]
    with pytest.raises(QueryError, match=REASON):
        answers["broken"]


def test_answers_and_failures_are_those_of_a_run_here(one: Cluster, app: Path) -> None:
    expected = caudal.run(app, app)
    client = caudal.Client(one.gateway)
    check(client.run(app, app, batch_bytes=500, partitions=1), expected)
    job = max(client.jobs(), key=lambda found: found.created)
    assert (job.state, job.failed) == ("done", ("broken",))
    check(client.results(job.id), expected)
    with pytest.raises(QueryError, match=REASON):
        client.run(app, app, "broken")
    with pytest.raises(QueryError, match=REASON):
        client.sql("SELECT CAST(k AS INTEGER) AS n FROM t", app, app)


def test_a_program_that_sends_rows_is_told(one: Cluster, app: Path) -> None:
    with caudal.Client(one.gateway).job(app) as job:
        job.send("t", [{"k": "a", "v": 1}])
        job.end()
        assert job.result("last").rows() == [{"n": 1}]
        with pytest.raises(QueryError, match=REASON):
            job.result("broken")
        assert list(job.results().failures) == ["broken"]


def test_every_representation_says_why(one: Cluster, app: Path) -> None:
    client = caudal.Client(one.gateway)
    client.run(app, app, batch_bytes=500)
    job = max(client.jobs(), key=lambda found: found.created).id
    url = f"{one.addresses[0]}/jobs/{job}"
    for accept in ("*/*", "application/json", "text/csv", "application/vnd.apache.parquet"):
        answer = httpx.get(f"{url}/results/broken", headers={"accept": accept})
        assert answer.status_code == 422
        error = answer.json()["error"]
        assert (error["code"], error["job"]) == ("query_failed", job)
        assert REASON in error["message"]
    stored = httpx.get(f"{url}/results/broken", headers={"accept": "application/vnd.caudal.result"})
    assert stored.status_code == 200
    assert REASON.encode() in stored.content
    assert httpx.get(f"{url}/results/last").status_code == 200
    status = httpx.get(url).json()
    assert list(status["failed"]) == list(status["outcome"]["failed"]) == ["broken"]
    events = httpx.get(f"{url}/events").text
    assert events.count("event: query-failed") == 1
    assert events.count("event: query-done") == 3


@pytest.mark.parametrize("form", ["csv", "json"])
def test_the_commands_give_what_there_is_and_end_as_run_does(
    form: str, one: Cluster, app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [str(app), "-d", str(app), "--format", form]
    assert main(["run", *where, "-o", str(tmp_path / "run")]) == ExitStatus.QUERY
    said = capsys.readouterr().err.splitlines()[-1]
    assert REASON in said
    store = ["--engine", "split", "--store", str(tmp_path / "store"), "--partitions", "1"]
    assert main(["run", *where, *store, "-o", str(tmp_path / "store-run")]) == ExitStatus.QUERY
    assert REASON in capsys.readouterr().err.splitlines()[-1]
    way = ["-g", one.gateway]
    assert main(["submit", *where, *way, "-o", str(tmp_path / "submit")]) == ExitStatus.QUERY
    told = capsys.readouterr().err.splitlines()
    assert any(line.startswith("broken failed: ") and REASON in line for line in told)
    assert told[-1].startswith("caudal: ")
    assert REASON in told[-1]
    assert main(["jobs", *way]) == ExitStatus.OK
    listed = capsys.readouterr().out.splitlines()
    job = max(caudal.Client(one.gateway).jobs(), key=lambda found: found.created).id
    assert any(line.startswith(job) and "(failed: broken)" in line for line in listed)
    words = ["results", job, *way, "--format", form]
    assert main([*words, "-o", str(tmp_path / "results")]) == ExitStatus.QUERY
    assert REASON in capsys.readouterr().err
    assert main([*words, "-q", "broken"]) == ExitStatus.QUERY
    assert main([*words, "-q", "last"]) == ExitStatus.OK
    names = {f"first.{form}", f"last.{form}"}
    wanted = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    assert set(wanted) == names
    for made in ("store-run", "submit", "results"):
        assert {path.name: path.read_bytes() for path in (tmp_path / made).iterdir()} == wanted


def test_json_on_standard_output_holds_the_others(
    one: Cluster, app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [str(app), "-d", str(app), "--format", "json"]
    assert main(["run", *where]) == ExitStatus.QUERY
    expected = capsys.readouterr().out
    assert main(["submit", *where, "-g", one.gateway]) == ExitStatus.QUERY
    assert capsys.readouterr().out == expected != ""


def test_a_status_of_an_older_gateway_is_read() -> None:
    old = b'{"run":"r","outcome":null,"tables":{},"folds":{},"results":[]}'
    assert msgspec.json.decode(old, type=JobStatus).failed == {}
