"""A client says that nothing of its job is computed, more and more seldom, whatever it asked."""

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from tests.harness.memory_cluster import Cluster
from tests.unit.client.conftest import PARAMETERS

from caudal.cli.main import main
from caudal.client import dataset_questions, stalled, upload_threads
from caudal.client.client import Client
from caudal.client.stalled import SECONDS, Standstill
from caudal.client.upkeep import take_care
from caudal.formats.loads import UpkeepRequest
from caudal.formats.outcomes import Outcome
from caudal.formats.replies import JobStatus, TableStatus

READS = {"q": ("t",), "both": ("t", "u"), "rejects": ("t", "u")}


def seen(
    mapped: int, arrived: int, batches: int | None, results: tuple[str, ...] = (), other: int = 0
) -> JobStatus:
    """A job whose table `t` is as given. Of `u`, so many batches are mapped, and more will come."""
    tables = {"t": TableStatus(batches, arrived, mapped), "u": TableStatus(None, other, other)}
    return JobStatus("r", None, tables, {}, results, READS)


def told(looks: Iterable[tuple[float, JobStatus]]) -> list[tuple[float, float]]:
    standstill = Standstill()
    found = [(now, standstill.begins(status, now)) for now, status in looks]
    return [(now, seconds) for now, seconds in found if seconds]


@pytest.mark.parametrize(
    "waiting",
    [seen(0, 3, None), seen(0, 3, 3), seen(2, 3, 3), seen(3, 3, 3), seen(0, 0, 0)],
    ids=["uploading", "sent", "mapping", "folding", "empty table"],
)
def test_a_job_that_could_go_on_and_does_not_is_named(waiting: JobStatus) -> None:
    looks = [(100.0 + second, waiting) for second in range(100)]
    assert told(looks) == [(115.0, 15.0), (130.0, 30.0), (160.0, 60.0)]


def test_each_task_that_ends_begins_the_time_anew() -> None:
    slow = [(10.0 * n, seen(n, 9, 9)) for n in range(9)]
    assert told(slow) == []
    again = [*slow, (95.0, seen(8, 9, 9)), (99.0, seen(8, 9, 9, ("q",))), (120.0, slow[-1][1])]
    assert told(again) == [(95.0, 15.0)]


@pytest.mark.parametrize("task_seconds", [16, 20, 29])
def test_long_tasks_are_told_once(task_seconds: int) -> None:
    looks = [(float(n), seen(n // task_seconds, 900, 900)) for n in range(3600)]
    assert told(looks) == [(SECONDS, SECONDS)]


@pytest.mark.parametrize(
    "slow",
    [seen(3, 3, None), seen(3, 3, 3, ("q",)), seen(3, 3, 3, ("q",), other=7)],
    ids=["one table", "the other table", "its batches are mapped"],
)
def test_a_slow_producer_is_no_standstill(slow: JobStatus) -> None:
    assert told((float(n), slow) for n in range(100)) == []


def test_an_ended_job_is_no_standstill() -> None:
    ended = JobStatus("r", Outcome("done"), {"t": TableStatus(3, 3, 0)}, {}, (), READS)
    assert told((float(n), ended) for n in range(100)) == []


def submit(client: Client, books: Path) -> None:
    client.run("books", books, "q2", parameters={"min_decades": 1})


def send(client: Client, books: Path) -> None:
    del books
    row = dict.fromkeys(("Title", "authors", "publisher", "publishedDate", "categories"), "1")
    with client.job("books", "q2", parameters={"min_decades": 1}) as job:
        job.send("books", [row])
        job.end()
        job.results()


def ask(client: Client, books: Path) -> None:
    del books
    client.dataset("shelf").sql("SELECT sum(score) FROM reviews", "books")


def watch(client: Client, books: Path) -> None:
    del books
    next(client.dataset("shelf").watch("books", "q3", parameters=PARAMETERS))


def load(client: Client, books: Path) -> None:
    client.load("books", books, dataset="another")


def compact(client: Client, books: Path) -> None:
    del books
    with client.gateways() as gateways:
        take_care(UpkeepRequest("shelf", compact_bytes=1024), gateways)


@pytest.fixture
def resting(one: Cluster, books: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of a cluster whose workers rest until it tells; each look comes 20 seconds later."""
    client, times, told_text = Client(one.gateway), itertools.count(0, 20), stalled.told
    client.load("books", books, dataset="shelf")
    monkeypatch.setattr(stalled, "monotonic", lambda: float(next(times)))
    for module in (upload_threads, dataset_questions):
        monkeypatch.setattr(module, "NEWS_SECONDS", 0.0)  # no look waits at the gateway

    def wake(seconds: float) -> str:
        one.working.set()
        return told_text(seconds)

    monkeypatch.setattr(stalled, "told", wake)
    one.working.clear()
    yield client
    one.working.set()


@pytest.mark.parametrize("way", [submit, send, ask, watch, load, compact])
def test_a_program_that_waits_for_a_cluster_without_workers_is_warned(
    way: Callable[[Client, Path], None],
    resting: Client,
    books: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    way(resting, books)
    assert caplog.messages[0].startswith("no task of this job has ended for 20 s: no worker runs")


@pytest.mark.parametrize(
    "words",
    [
        ["watch", "books", "q1", "--count", "1", "--dataset", "shelf"],
        ["compact", "shelf"],
        ["load", "books", "--file=reviews=-", "--every", "1s", "--dataset", "streamed"],
    ],
    ids=lambda words: words[0],
)
def test_a_person_who_waits_for_a_cluster_without_workers_is_told(
    words: list[str],
    resting: Client,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    books: Path,
) -> None:
    with (books / "Books_rating.csv").open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert main([*words, "--gateway", ",".join(resting.addresses)]) == 0
    assert "no task of this job has ended for 20 s: no worker runs" in capsys.readouterr().err
