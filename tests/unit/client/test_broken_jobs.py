"""Rows that a program sends: a call of `send` is taken whole, or not at all, or breaks the job."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.harness.memory_cluster import Cluster

from caudal.client.batches import BatchCutter, RowWriter
from caudal.client.client import Client
from caudal.client.http import HttpGateways
from caudal.client.job import StreamedJob
from caudal.errors import CaudalError, DataError, JobError
from caudal.formats import batch as batch_format
from caudal.jobs.interfaces import UnreachableError

ROWS = 2500
BATCH_BYTES = 20_000  # some batches; all rows of the first 1,400 are more than one


def row(number: int) -> dict[str, Any]:
    return {
        "Title": f"Distributed {number}",
        "authors": ["Ann"],
        "publisher": None,
        "publishedDate": "2001",
        "categories": ["Computers"],
    }


def spoilt(rows: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    return [*rows[:number], {**rows[number], "publisher": object()}, *rows[number + 1 :]]


GOOD = [row(number) for number in range(ROWS)]
BAD = spoilt(GOOD, 1400)
BAD_ROW = r"^row 1401, column 'publisher' holds a object"


def job_of(one: Cluster, batch_bytes: int) -> StreamedJob:
    return Client(one.gateway).job("books", ["q1"], batch_bytes=batch_bytes)


def titles(job: StreamedJob) -> list[str]:
    found = [one["title"].split()[1] for one in job.results()["q1"].rows()]
    return sorted(found, key=int)


@pytest.mark.parametrize(
    ("given", "batch_bytes"),
    [(list, 1 << 20), (list, BATCH_BYTES), (tuple, BATCH_BYTES), (iter, 1 << 20)],
)
def test_what_is_refused_is_taken_back_whole(
    given: Callable[[Any], Any], batch_bytes: int, one: Cluster
) -> None:
    with job_of(one, batch_bytes) as job:
        job.send("books", [row(ROWS)])
        with pytest.raises(DataError, match=BAD_ROW):
            job.send("books", given(BAD))
        job.send("books", given(GOOD))
        job.end("books")
        assert titles(job) == [str(number) for number in range(ROWS + 1)]


def attempts(job: StreamedJob) -> list[Callable[[], object]]:
    return [
        lambda: job.send("books", [row(0)]),
        lambda: job.end("books"),
        lambda: job.end(),
        lambda: job.result("q1"),
        lambda: job.results(),
    ]


def check_broken(job: StreamedJob) -> None:
    for attempt in attempts(job):
        with pytest.raises(JobError, match=f"job {job.id} is broken: .*table books.*begin a new"):
            attempt()
    assert job.status().outcome is None, "one may look at it"


def failing() -> Iterator[dict[str, Any]]:
    yield from GOOD
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("rows", "error"), [(lambda: iter(BAD * 2), DataError), (failing, ZeroDivisionError)]
)
def test_an_iterator_that_fails_after_a_batch_breaks_the_job(
    rows: Callable[[], Iterator[Any]], error: type[Exception], one: Cluster
) -> None:
    with job_of(one, BATCH_BYTES) as job:
        with pytest.raises(error):
            job.send("books", rows())
        check_broken(job)
    outcome = Client(one.gateway).status(job.id).outcome
    assert outcome is not None
    assert outcome.state == "cancelled", "nobody can go on with it"


def test_rows_that_are_lost_on_their_way_break_the_job(
    one: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An end after that would be one of fewer rows, and the answer wrong."""
    put, lock, sent = HttpGateways.put_batch, threading.Lock(), list[int]()

    def lose(self: HttpGateways, job_id: str, data: bytes, **how: Any) -> Any:
        with lock:
            sent.append(1)
            is_lost = len(sent) == 3
        if is_lost:
            raise UnreachableError("no gateway answered")
        return put(self, job_id, data, **how)

    monkeypatch.setattr(HttpGateways, "put_batch", lose)
    with job_of(one, 2_000) as job:
        with pytest.raises(UnreachableError):
            job.send("books", GOOD)
        check_broken(job)


@pytest.mark.parametrize("what", ["put_batch", "put_end"])
def test_an_end_that_fails(what: str, one: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its last rows it breaks the job; else it can be sent again."""
    whole, lost = getattr(HttpGateways, what), list[str]()

    def lose(self: HttpGateways, *given: Any, **how: Any) -> Any:
        if not lost:
            lost.append(what)
            raise UnreachableError("no gateway answered")
        return whole(self, *given, **how)

    monkeypatch.setattr(HttpGateways, what, lose)
    with job_of(one, 1 << 20) as job:
        job.send("books", GOOD)
        with pytest.raises(UnreachableError):
            job.end()
        if what == "put_batch":
            check_broken(job)
        else:
            job.end()
            assert len(titles(job)) == ROWS


def test_columns_of_rows_that_were_refused_do_not_count(one: Cluster) -> None:
    with job_of(one, 1 << 20) as job:
        with pytest.raises(DataError, match="holds a object"):
            job.send("books", [{"Name": object()}])
        with pytest.raises(DataError, match="columns Name after rows with Title"):
            job.send("books", iter([pa.table({"Title": ["a"]}), pa.table({"Name": ["b"]})]))
        job.send("books", GOOD[:1])
        job.end()
        assert titles(job) == ["0"]


@pytest.mark.parametrize("batch_bytes", [20, 6_000])
def test_a_writer_goes_on_where_it_was(batch_bytes: int) -> None:
    writer = RowWriter("t", BatchCutter(batch_bytes, compress=False), ("a", "b"))
    made = list(writer.batches([("x", "1")] * 1500))
    for rows in ([("y", "2")] * 3000 + [("y", object())], [("y", "2"), ("y",)]):
        with pytest.raises(CaudalError):
            list(writer.batches(rows))
    made += [*writer.batches([("z\nz", "3")]), *writer.rest()]
    batches = [batch_format.decode(one if isinstance(one, bytes) else one(), "") for one in made]
    assert [index.number for index, _ in batches] == list(range(len(batches)))
    records = b"".join(records for _, records in batches)
    assert records == b"x,1\n" * 1500 + b'"z\nz",3\n'
    assert sum(index.bytes for index, _ in batches[:-1]) == batches[-1][0].offset


def test_a_list_of_arrow_data_is_written_batch_by_batch() -> None:
    """It may be far smaller in memory than as text."""
    writer = RowWriter("t", BatchCutter(20, compress=False))
    made = writer.batches([pa.table({"a": ["x" * 20]}), pa.table({"b": ["y"]})])
    assert next(made)
    with pytest.raises(DataError, match="columns b after rows with a"):
        next(made)
