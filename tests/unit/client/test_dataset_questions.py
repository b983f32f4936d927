"""Questions to datasets of a cluster, through its gateways: from Python and by commands."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.harness.memory_cluster import Cluster, cluster
from tests.unit.client.conftest import PARAMETERS

import caudal
from caudal.application import find_application
from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.client import dataset_questions
from caudal.client.client import Client
from caudal.client.dataset_questions import DatasetAnswer, DatasetQuestion, ask, versions
from caudal.client.http import HttpGateways
from caudal.datasets.cluster_place import locate
from caudal.datasets.compaction import compact
from caudal.datasets.vacuum import vacuum
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_sources import file_sources
from caudal.errors import UnreachableError, UsageError
from caudal.files.sources import Sources
from caudal.formats.outcomes import PLANNED_ELSEWHERE, Outcome
from caudal.formats.replies import SeenVersion
from caudal.formats.tokens import NOBODY
from caudal.jobs.interfaces import GoneError
from caudal.results.answers import Answers

PARAM = [word for name, value in PARAMETERS.items() for word in ("--param", f"{name}={value}")]
COUNT = "SELECT count(*) AS n FROM reviews"


def load(found: Cluster, data: Path, name: str, owner: str = NOBODY, **files: str) -> None:
    """Put a dataset into the cluster's store, as a loader does."""
    app = find_application("books")
    tables = [table for table in app.tables if not files or table.name in files]
    given = {table: [path] for table, path in files.items()}
    with open_loader(app, name, locate(found.store, owner, name).below) as loader:
        loader.load(file_sources(Sources(data, given), tables))


def more_reviews(folder: Path) -> str:
    path = folder / "more.csv"
    path.write_text('Id,Title,review/score,review/text\n1,"Distributed Book, 1",5.0,good\n')
    return str(path)


def test_answers_are_those_over_the_files(one: Cluster, books: Path, expected: Answers) -> None:
    load(one, books, "plain")
    shelf = Client(one.gateway).dataset("plain")
    answers = shelf.run("books", parameters=PARAMETERS)
    for name, result in expected.items():
        assert answers[name].table.equals(result.table), name
        assert answers[name].title == result.title
    again = shelf.run("books", parameters=PARAMETERS)
    assert all(again[name].table.equals(answers[name].table) for name in answers)
    assert shelf.sql(COUNT, "books").rows() == [{"n": 1200}]
    rejected = shelf.sql("SELECT count(*) AS n FROM rejects", "books")
    assert rejected.rows() == [{"n": expected.rejects.total}]


def test_versions_and_as_of(one: Cluster, books: Path, tmp_path: Path) -> None:
    load(one, books, "growing")
    load(one, books, "growing", reviews=more_reviews(tmp_path))
    client = Client(one.gateway)
    assert client.dataset("growing").sql(COUNT, "books").rows() == [{"n": 1201}]
    assert client.dataset("growing", as_of=1).sql(COUNT, "books").rows() == [{"n": 1200}]
    with pytest.raises(UsageError, match="there is no version 7: the newest is 2"):
        client.dataset("growing", as_of=7).sql(COUNT, "books")
    with pytest.raises(UsageError, match="there is no dataset nowhere that you may read"):
        client.dataset("nowhere").sql(COUNT, "books")


def test_a_version_that_was_vacuumed(one: Cluster, books: Path, tmp_path: Path) -> None:
    load(one, books, "swept")
    load(one, books, "swept", reviews=more_reviews(tmp_path))
    below = locate(one.store, NOBODY, "swept").below
    compact(below, 10.0**10)
    vacuum(below, 10.0**10, keep=0.0, grace=0.0)
    client = Client(one.gateway)
    with pytest.raises(UsageError, match=r"version 1 of swept was vacuumed: the oldest .* is 3"):
        client.dataset("swept", as_of=1).sql(COUNT, "books")
    assert client.dataset("swept", as_of=3).sql(COUNT, "books").rows() == [{"n": 1201}]


def test_a_dataset_of_another_application(one: Cluster, books: Path) -> None:
    load(one, books, "of-books")
    why = r"of-books holds a dataset of books, not of movies: .*--dataset NEW.*ask it with books"
    with pytest.raises(UsageError, match=why):
        Client(one.gateway).dataset("of-books").sql("SELECT count(*) FROM movies", "movies")


def test_watching_sees_versions_while_they_come(one: Cluster, books: Path, tmp_path: Path) -> None:
    load(one, books, "watched")
    watching = Client(one.gateway).dataset("watched").watch("books", "q3", parameters=PARAMETERS)
    number, answers = next(watching)
    assert number == 1
    assert answers["q3"].table.equals(
        caudal.run("books", books, "q3", parameters=PARAMETERS)["q3"].table
    )
    load(one, books, "watched", reviews=more_reviews(tmp_path))
    assert next(watching)[0] == 2


def test_the_stream_of_versions_goes_on_at_another_gateway(
    two: Cluster, books: Path, tmp_path: Path
) -> None:
    load(two, books, "shelf")
    with Client(two.gateway).gateways() as gateways:
        seen = versions(gateways, "shelf")
        assert next(seen).version == 1
        for server in two.servers:
            if server.address == gateways.in_turn()[0]:
                server.die()
        load(two, books, "shelf", reviews=more_reviews(tmp_path))
        assert next(seen).version == 2


class QuietGateways:
    """A gateway whose streams are given, one for each look; the time passes in pauses."""

    patience_seconds = 60.0
    addresses = ("http://a",)

    def __init__(self, streams: list[Exception | list[int]], monkeypatch: pytest.MonkeyPatch):
        self._streams = streams
        self._now = 0.0
        self.lines: list[str] = []
        monkeypatch.setattr(dataset_questions, "_from_one", self._one)
        monkeypatch.setattr("caudal.client.dataset_questions.monotonic", lambda: self._now)

    def _one(self, *_: object) -> Iterator[SeenVersion | None]:
        found = self._streams.pop(0)
        if isinstance(found, Exception):
            raise found
        yield None
        self._now += 100.0  # a stream stays open for long
        yield from (SeenVersion(number, 0) for number in found)
        if not found and len(self._streams) % 2:
            raise UnreachableError("the stream was cut")

    def begin_at(self, name: str) -> None: ...

    def tell_rarely(self, line: str) -> None:
        self.lines.append(line)

    def in_turn(self) -> list[str]:
        return list(self.addresses)

    def prefer(self, address: str) -> None: ...

    def pause(self, rounds: int) -> None:
        self._now += 3.0


def test_a_quiet_dataset_is_watched_for_as_long_as_gateways_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = UnreachableError("away")
    streams: list[Exception | list[int]] = [[1], *[[]] * 100, *[away] * 15, [2], *[away] * 30]
    gateways = QuietGateways(streams, monkeypatch)
    seen = versions(cast(HttpGateways, gateways), "shelf")
    assert next(seen).version == 1
    assert gateways.lines == []
    assert next(seen).version == 2
    told = "no gateway can answer now, trying again for up to 60 seconds: http://a: away"
    assert gateways.lines == [told]
    why = r"answered for 60 seconds \(tried http://a: away\): is the address right"
    with pytest.raises(UnreachableError, match=why):
        next(seen)
    assert gateways.lines == [told, told]


def test_commands(
    one: Cluster, books: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(one, books, "commanded")
    way = ["--gateway", one.gateway, "--dataset", "commanded"]
    assert main(["run", "books", *PARAM, "-q", "q3", "-d", str(books), "--format", "json"]) == 0
    wanted = capsys.readouterr().out
    assert main(["submit", "books", *PARAM, "-q", "q3", *way, "--format", "json"]) == 0
    assert capsys.readouterr().out == wanted
    assert main(["sql", "books", COUNT, *way, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 1200}]
    load(one, books, "commanded", reviews=more_reviews(tmp_path))
    assert main(["sql", "books", COUNT, *way, "--as-of", "1", "--format", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["n", "1200"]
    watch = ["watch", "books", "q3", *PARAM, *way, "--count", "1"]
    assert main([*watch, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == 2
    assert main(watch) == 0
    assert "version 2 (" in capsys.readouterr().out
    assert main(["submit", "books", *way, "--detach"]) == 0
    job = capsys.readouterr().out.strip()
    assert Client(one.gateway).status(job).application == "books"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["submit", "books", "-d", "x"], "--data and --dataset are two sources"),
        (["submit", "books", "--strict"], "ask the table `rejects` instead"),
        (["submit", "books", "--resume", "x"], "not resumed but repeated"),
        (["submit", "books", "-q", "q9"], "books has no query 'q9'"),
        (["watch", "books", "q3", "--from", "x"], "leave one of them out"),
        (["sql", "books", "SELECT 1", "--from", "x"], "--dataset asks a cluster"),
    ],
)
def test_options_that_contradict_each_other(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    way = ["--gateway", "http://127.0.0.1:1", "--dataset", "shelf"]
    assert main([*words, *way]) == ExitStatus.USAGE
    assert told in capsys.readouterr().err


def test_readers_may_ask_and_others_find_nothing(books: Path) -> None:
    with cluster(token="secret-of-somebody-0123456789") as found:
        load(found, books, "mine", owner="another")
        client = Client(found.gateway, "secret-of-somebody-0123456789")
        with pytest.raises(UsageError, match="no dataset another/mine that you may read"):
            client.dataset("another/mine").sql(COUNT, "books")
        with pytest.raises(UsageError, match="no dataset another/mine that you may read"):
            next(client.dataset("another/mine").watch("books", "q3"))
        locate(found.store, "another", "mine").share("somebody")
        assert client.dataset("another/mine").sql(COUNT, "books").rows() == [{"n": 1200}]


class Asked:
    """What becomes of a question each time that it is asked."""

    def __init__(
        self, ends: list[DatasetAnswer | GoneError], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._ends = ends
        self.count = 0
        monkeypatch.setattr(dataset_questions, "_ask_once", self._once)

    def _once(self, *_: object, **__: object) -> DatasetAnswer:
        self.count += 1
        end = self._ends[min(self.count, len(self._ends)) - 1]
        if isinstance(end, GoneError):
            raise end
        return end

    def answer(self) -> DatasetAnswer:
        question = DatasetQuestion(find_application("books"), "shelf")
        return ask(question, HttpGateways(["http://127.0.0.1:1"]))


def failed(reason: str, **results: bytes) -> DatasetAnswer:
    return DatasetAnswer("j", 1, Outcome("failed", reason), results)


ANSWERED = DatasetAnswer("j", 1, Outcome("done"), {"q1": b"rows"})
GONE = GoneError("job j ended and was started again: send it again")
LEFT = failed(f"{PLANNED_ELSEWHERE}rows, and no worker has it: ask it again")


def test_a_question_that_nobody_computes_any_more_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked([LEFT, LEFT, ANSWERED], monkeypatch)
    assert asked.answer() is ANSWERED
    assert asked.count == 3


def test_a_question_is_not_asked_again_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked([LEFT], monkeypatch)
    assert asked.answer() is LEFT
    assert asked.count == 5


def test_a_question_whose_job_somebody_else_began_anew_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked([LEFT, GONE, ANSWERED], monkeypatch)
    assert asked.answer() is ANSWERED
    always = Asked([GONE], monkeypatch)
    with pytest.raises(GoneError):
        always.answer()
    assert always.count == 5


@pytest.mark.parametrize(
    "end",
    [
        ANSWERED,
        failed("version 1 of shelf was vacuumed"),
        failed(LEFT.outcome.reason if LEFT.outcome else "", q1=b"rows"),
        DatasetAnswer("j", 1, None, {}),
    ],
)
def test_other_ends_are_told(end: DatasetAnswer, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked([end], monkeypatch)
    assert asked.answer() is end
    assert asked.count == 1
