"""`caudal submit`, `jobs`, `results`, `cancel`, `sql --gateway` as a user meets them."""

import json
import re
import threading
from pathlib import Path

import pytest
from tests.harness.memory_cluster import Cluster, cluster
from tests.harness.waiting import GUARD_SECONDS
from tests.unit.client.conftest import PARAMETERS

import caudal
from caudal.cli import submit_progress
from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.client.client import Client
from caudal.datasets.cluster_place import MOST_LISTED
from caudal.formats.batch import BatchHeader
from caudal.formats.tokens import NOBODY
from caudal.results.answers import Answers

PARAM = [word for name, value in PARAMETERS.items() for word in ("--param", f"{name}={value}")]
SMALL = ["--batch-size", "4KiB"]


def submit(*words: str) -> int:
    return main(["submit", "books", *PARAM, *SMALL, *words])


def test_files_and_standard_output_are_those_of_run(
    one: Cluster, books: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    where = ["-d", str(books)]
    for form in ("csv", "json", "parquet"):
        assert submit(*where, "-g", one.gateway, "--format", form, "-o", str(mine)) == 0
        assert main(["run", "books", *PARAM, *where, "--format", form, "-o", str(theirs)]) == 0
    names = sorted(path.name for path in theirs.iterdir())
    assert names == sorted(path.name for path in mine.iterdir())
    for name in names:
        assert (mine / name).read_bytes() == (theirs / name).read_bytes(), name
    capsysbinary.readouterr()
    assert submit(*where, "-g", one.gateway, "--format", "json") == 0
    out, err = capsysbinary.readouterr()
    assert main(["run", "books", *PARAM, *where, "--format", "json"]) == 0
    assert out == capsysbinary.readouterr().out
    assert b"sent reviews: 0.1 MB" in err
    assert b"answered q5" in err
    assert b"rejected: reviews: 1 row: review/score is not a number" in err


def test_every_rejected_row_is_written(one: Cluster, books: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "Books_rating.csv"
    lines = (books / "Books_rating.csv").read_text().splitlines(keepends=True)
    lines[3:3] = [f"{number},t,none,x\n" for number in range(20)] + ["too,short\n"]
    damaged.write_text("".join(lines))
    where = ["-d", str(books), "--file", f"reviews={damaged}"]
    mine, theirs = tmp_path / "mine.csv", tmp_path / "theirs.csv"
    assert submit(*where, "-g", one.gateway, "--rejects", str(mine), "-o", str(tmp_path)) == 0
    assert main(["run", "books", *where, "--rejects", str(theirs), "-o", str(tmp_path)]) == 0
    assert len(theirs.read_text().splitlines()) == 23
    assert mine.read_text() == theirs.read_text()


def test_strict_has_the_exit_status_of_run(
    one: Cluster, books: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = submit("-d", str(books), "-g", one.gateway, "--strict")
    assert status == ExitStatus.REJECTED_ROW
    assert "review/score is not a number (table reviews)" in capsys.readouterr().err


def test_the_gateway_may_stand_in_the_environment(
    books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret-token\n")
    with cluster(token="s3cret-token") as found:
        monkeypatch.setenv("CAUDAL_GATEWAY", found.gateway)
        assert submit("-d", str(books), "-q", "q1", "--format", "csv") == ExitStatus.USAGE
        assert "does not know this token" in capsys.readouterr().err
        monkeypatch.setenv("CAUDAL_TOKEN_FILE", str(token))
        assert main(["jobs"]) == ExitStatus.OK
        assert capsys.readouterr() == ("", "no jobs\n")
        assert submit("-d", str(books), "-q", "q1", "--format", "csv") == ExitStatus.OK
    out, err = capsys.readouterr()
    assert out.startswith("title,authors,publisher\n")
    assert "s3cret" not in out + err


def test_titles_tell_given_values(
    one: Cluster, books: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["-d", str(books), "-g", one.gateway, "-q", "q3", "--param", "min_reviews=7"]
    assert submit(*arguments) == ExitStatus.OK
    assert "at least 500 reviews (min_reviews=7)\n" in capsys.readouterr().out


def test_jobs_results_cancel(one: Cluster, books: Path, capsys: pytest.CaptureFixture[str]) -> None:
    way = ["-g", one.gateway]
    assert submit("-d", str(books), *way, "-q", "q1", "-q", "q2", "--detach") == 0
    job = capsys.readouterr().out.strip()
    with Client(one.gateway).job("books") as other:
        assert main(["jobs", *way]) == 0
        listed = capsys.readouterr().out
        assert f"{other.id}  running" in listed
        assert main(["results", other.id, *way]) == ExitStatus.JOB
        assert "has no answer yet: books: 0 of 0 batches read" in capsys.readouterr().err
        assert main(["cancel", other.id, *way]) == 0
        assert "is cancelled: the client cancelled it" in capsys.readouterr().out
        assert main(["results", other.id, *way]) == ExitStatus.JOB
        assert "is cancelled" in capsys.readouterr().err
    Client(one.gateway).run("books", books, "q1")  # by now the first one is done as well
    assert main(["results", job, *way, "-q", "q2", "--format", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"q2"}
    assert main(["results", job, *way, "-q", "q9"]) == ExitStatus.USAGE
    assert main(["results", "nothing", *way]) == ExitStatus.JOB
    assert "there is no job nothing" in capsys.readouterr().err


def test_any_select(one: Cluster, books: Path, capsys: pytest.CaptureFixture[str]) -> None:
    select = "SELECT count(*) AS n, count(DISTINCT title) AS titles FROM reviews"
    way = ["-d", str(books), "-g", one.gateway, "--format", "csv"]
    assert main(["sql", "books", select, *way]) == 0
    assert capsys.readouterr().out == "n,titles\n1200,40\n"
    assert main(["sql", "books", "SELECT nothing FROM reviews", *way]) == ExitStatus.USAGE
    assert "nothing" in capsys.readouterr().err


def test_no_gateway_has_its_own_exit_status(
    books: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    way = ["-d", str(books), "-g", "127.0.0.1:9,127.0.0.1:10", "--patience", "0.2"]
    assert submit(*way) == ExitStatus.UNREACHABLE
    [line] = capsys.readouterr().err.splitlines()
    assert "tried http://127.0.0.1:" in line
    assert re.search(r"http://127\.0\.0\.1:9[,:] ?", line)
    assert re.search(r"http://127\.0\.0\.1:10[,:] ?", line)
    assert line.endswith("run the command again")


def test_gateways_that_die_leave_the_command_to_resume(
    two: Cluster, books: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After some batches both are gone; the command that is named goes on when they are back."""

    class Killing(submit_progress.SubmitProgress):
        def sent(self, table: str, batch: BatchHeader) -> None:
            super().sent(table, batch)
            if table == "reviews" and batch.number == 4:
                for server in two.servers:
                    server.die()

    monkeypatch.setattr("caudal.cli.submit.SubmitProgress", Killing)
    out = str(books.parent / "resumed")
    way = ["-d", str(books), "-g", two.gateway, "--out", out]
    assert submit(*way, "--patience", "0.5") == ExitStatus.UNREACHABLE
    err = capsys.readouterr().err
    last = err.splitlines()[-1]
    assert all(address in last for address in two.addresses)
    words = last.partition("go on with: ")[2].partition("; or cancel")[0].split()
    assert words[:3] == ["caudal", "submit", "books"]
    assert words[-2] == "--resume"
    for server in two.servers:
        server.start()
    monkeypatch.undo()
    assert main(words[1:]) == ExitStatus.OK
    found = Path(out, "q5.csv").read_text()
    expected = caudal.run("books", books, ["q5"], parameters=PARAMETERS)["q5"].rows()
    assert found.splitlines()[1:] == [f'"{row["title"]}"' for row in expected]


def test_rows_are_previewed_while_files_are_sent(
    one: Cluster, books: Path, expected: Answers, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """q1 only filters: each of its rows is shown once before its table has ended."""
    previewed = threading.Event()
    shown: list[str] = []

    class Waiting(submit_progress.SubmitProgress):
        def _show_rows(self, query: str, rows: list[dict[str, object]]) -> None:
            super()._show_rows(query, rows)
            shown.extend(str(row["title"]) for row in rows)
            if len(shown) >= 5:
                previewed.set()

        def sent(self, table: str, batch: BatchHeader) -> None:
            super().sent(table, batch)
            if table == "books" and batch.number == 1:
                assert previewed.wait(GUARD_SECONDS)

    monkeypatch.setattr("caudal.cli.submit.SubmitProgress", Waiting)
    many = books.parent / "many.csv"
    header, *lines = (books / "books_data.csv").read_text().splitlines(keepends=True)
    many.write_text(header + "".join(lines) * 4)
    words = ["-d", str(books), "-g", one.gateway, "--file", f"books={many}", "--preview"]
    assert submit(*words, "-q", "q1", "--format", "json") == 0
    out, err = capsys.readouterr()
    titles = [row["title"] for row in json.loads(out)["q1"]]
    assert all(titles.count(title) >= shown.count(title) for title in titles)
    assert set(shown) <= set(titles)
    assert err.count("q1 so far: title: ") == min(len(shown), 50)
    assert len(expected["q1"]) * 4 == len(titles)


def test_a_list_of_datasets_that_is_not_whole_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with cluster() as found:
        names = [f"shelf{number}" for number in range(MOST_LISTED + 1)]
        found.store.create(f"shared/{NOBODY}/carla/{names[0]}/000000", b"{}")
        assert main(["datasets", "-g", found.gateway]) == 0
        assert capsys.readouterr().err == "no datasets\n"
        for name in names[1:]:
            found.store.create(f"shared/{NOBODY}/carla/{name}/000000", b"{}")
        assert main(["datasets", "-g", found.gateway]) == 0
        assert "note: others share more with you than is listed" in capsys.readouterr().err
