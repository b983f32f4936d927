"""`caudal.Client` against real gateways: the same answers as in one process, whatever is lost."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.harness.memory_cluster import Cluster, cluster
from tests.harness.waiting import GUARD_SECONDS
from tests.unit.client.conftest import BATCH_BYTES, PARAMETERS, check

import caudal
from caudal.application import find_application
from caudal.client.client import Client
from caudal.client.job import StreamedJob
from caudal.client.results import answers_of
from caudal.client.submit import Submission, Watching, submit
from caudal.errors import DataError, JobError, RejectedRowError, UnreachableError, UsageError
from caudal.files.sources import Sources
from caudal.formats.batch import BatchHeader
from caudal.formats.job import Options
from caudal.formats.keys import REJECTS
from caudal.formats.quotas import Quotas
from caudal.jobs.interfaces import ConflictError, GoneError
from caudal.results.answers import Answers

HOW: dict[str, Any] = {"parameters": PARAMETERS, "batch_bytes": BATCH_BYTES}


def test_the_same_answers_as_in_one_process(one: Cluster, books: Path, expected: Answers) -> None:
    with Client(one.gateway) as client:
        check(client.run("books", books, **HOW), expected)
        some = client.run("books", books, ["q2", "q1"], **HOW)
    assert list(some) == ["q2", "q1"]
    assert some["q1"].table.equals(expected["q1"].table)


def test_a_select_over_cleaned_tables(one: Cluster, books: Path) -> None:
    found = Client(one.gateway).sql("SELECT count(*) AS n FROM reviews", "books", books)
    assert found.rows() == [{"n": 1200}]
    with pytest.raises(caudal.CaudalError, match="nowhere"):
        Client(one.gateway).sql("SELECT 1 FROM nowhere", "books", books)


def test_files_compressed_and_parquet(
    one: Cluster, books: Path, expected: Answers, tmp_path: Path
) -> None:
    reviews = (books / "Books_rating.csv").read_bytes()
    (tmp_path / "Books_rating.csv.gz").write_bytes(pa.compress(reviews, "gzip", asbytes=True))
    table = pyarrow.csv.read_csv(
        books / "books_data.csv",
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(["publishedDate", "publisher"], pa.string())
        ),
    )
    pq.write_table(table, tmp_path / "books_data.parquet")
    answers = Client(one.gateway, compress="always").run("books", tmp_path, **HOW)
    check(answers, expected)


def test_jobs_can_be_listed_and_their_results_fetched_again(
    one: Cluster, books: Path, expected: Answers
) -> None:
    client = Client(one.gateway)
    before = {job.id for job in client.jobs()}
    client.run("books", books, **HOW)
    [job] = [job for job in client.jobs() if job.id not in before]
    assert (job.state, job.application) == ("done", "books")
    check(client.results(job.id), expected)
    assert client.cancel(job.id).state == "done"
    assert client.status(job.id).outcome is not None


def test_a_job_that_is_not_there(one: Cluster) -> None:
    for ask in (Client(one.gateway).status, Client(one.gateway).results):
        with pytest.raises(GoneError, match="there is no job nothing"):
            ask("nothing")


def test_a_wrong_token_is_named_and_never_shown(books: Path) -> None:
    with cluster(token="right") as found:
        client = Client(found.gateway, token="wrong-secret")
        with pytest.raises(UsageError, match="does not know this token") as caught:
            client.run("books", books, **HOW)
        assert "wrong-secret" not in f"{caught.value}{client!r}"
        assert list(Client(found.gateway, "right").run("books", books, "q1", **HOW)) == ["q1"]


def test_no_gateway_at_all(books: Path) -> None:
    client = Client("127.0.0.1:9,127.0.0.1:10", patience_seconds=0.3)
    both = r"tried (?=.*http://127\.0\.0\.1:9[:,])(?=.*http://127\.0\.0\.1:10[:,]).*resume='"
    with pytest.raises(UnreachableError, match=both):
        client.run("books", books)
    with pytest.raises(UsageError, match="compress must be one of auto, always, never"):
        Client("127.0.0.1:9", compress="sometimes")


def test_something_else_answers() -> None:
    """A server that is no gateway: its 404 is not a job's."""
    with cluster() as found:
        found.servers[0].unreliable.judge = lambda method, path: 404
        with pytest.raises(UsageError, match="is the address right"):
            Client(found.gateway).status("j")


class KillsTheFirst(Watching):
    """One of two gateways dies in the middle of the upload."""

    def __init__(self, two: Cluster) -> None:
        self._two = two

    def sent(self, table: str, batch: BatchHeader) -> None:
        if table == "reviews" and batch.number == 5:
            self._two.servers[0].die()


def submission(books: Path, **more: Any) -> Submission:
    return Submission(
        find_application("books"),
        Sources(books),
        parameters=PARAMETERS,
        options=Options(batch_bytes=BATCH_BYTES, partitions=2),
        **more,
    )


def answers_through(found: Cluster, given: Submission, watching: Watching | None) -> Answers:
    with Client(found.gateway).gateways() as gateways:
        outcome, results = submit(given, gateways, watching)
    assert outcome is not None
    assert outcome.state == "done"
    return answers_of(results, given.asked)


def test_a_gateway_that_dies_costs_nothing(two: Cluster, books: Path, expected: Answers) -> None:
    check(answers_through(two, submission(books), KillsTheFirst(two)), expected)


def test_every_answer_lost_once(two: Cluster, books: Path, expected: Answers) -> None:
    """So every request comes twice, at one gateway or the other."""
    lost: set[tuple[str, str]] = set()
    lock = threading.Lock()

    def judge(method: str, path: str) -> int | None:
        with lock:
            fate = None if (method, path) in lost else 504
            lost.add((method, path))
        return fate

    for server in two.servers:
        server.unreliable.judge = judge
    check(answers_through(two, submission(books), None), expected)


def test_the_gateway_that_answers_is_asked_first(two: Cluster, books: Path) -> None:
    first, other = two.servers
    first.unreliable.judge = lambda method, path: 503
    Client(two.gateway).run("books", books, "q1", **HOW)
    assert len(first.unreliable.asked) <= 1, "once, if the job begins there"
    assert len(other.unreliable.asked) > 5


def test_a_preview_goes_on_at_another_gateway(two: Cluster, books: Path) -> None:
    """Each row once, though the gateway that gave the first ones is gone."""
    rows = rows_of(books / "books_data.csv").to_pylist()
    with Client(two.gateway).job("books", ["q1"], **HOW) as job:
        job.send("books", rows * 30)
        preview = job.preview("q1")
        shown = [next(preview)]
        asked = [server for server in two.servers if preview_of(job.id) in server.unreliable.asked]
        asked[0].die()
        job.send("books", rows)
        job.end("books")
        shown += preview
        found = job.results()["q1"].rows()
    assert sorted(shown, key=repr) == sorted(found, key=repr)
    assert len(found) == 310


def preview_of(job_id: str) -> tuple[str, str]:
    return "GET", f"/jobs/{job_id}/results/q1/preview"


def test_a_full_gateway_is_asked_again(one: Cluster, books: Path, expected: Answers) -> None:
    refused: list[str] = []

    def judge(method: str, path: str) -> int | None:
        if "/batches/" in path and len(refused) < 3:
            refused.append(path)
            return 429
        return None

    one.servers[0].unreliable.judge = judge
    try:
        check(answers_through(one, submission(books), None), expected)
    finally:
        one.servers[0].unreliable.judge = lambda method, path: None
    assert len(refused) == 3


class Early(Watching):
    """Notes what was answered, and when."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.first_two = threading.Event()
        self.ends: list[str] = []

    def ended(self, table: str) -> None:
        self.ends.append(table)

    def answered(self, query: str, result: bytes) -> None:
        self.answers.append(query)
        if {"q1", "q2"} <= set(self.answers):
            self.first_two.set()


class Held:
    """A stream that ends only after somebody lets it."""

    def __init__(self, path: Path, let: threading.Event) -> None:
        self._file = path.open("rb")
        self._size = path.stat().st_size
        self._let = let
        self.was_let = False

    def readinto(self, buffer: memoryview, /) -> int:
        if self._file.tell() > self._size // 2 and not self.was_let:
            self.was_let = self._let.wait(GUARD_SECONDS)
        count = self._file.readinto(buffer)
        if not count:
            self._file.close()
        return count


def test_answers_come_before_the_other_tables_are_sent(
    one: Cluster, books: Path, expected: Answers
) -> None:
    """q1 and q2 read books only: they are answered while reviews still arrive."""
    early = Early()
    held = Held(books / "Books_rating.csv", early.first_two)
    given = Submission(
        find_application("books"),
        Sources(books, {"reviews": ["-"]}),
        parameters=PARAMETERS,
        options=Options(batch_bytes=BATCH_BYTES),
        standard_input=lambda: held,
    )
    check(answers_through(one, given, early), expected)
    assert held.was_let, "q1 and q2 were not answered before reviews had ended"
    assert set(early.answers[:2]) == {"q1", "q2"}
    assert set(early.answers) == {"q1", "q2", "q3", "q4", "q5", REJECTS}
    assert early.ends == ["books", "reviews"]


def test_a_result_is_taken_only_of_ones_own_data(one: Cluster, books: Path, tmp_path: Path) -> None:
    """Somebody else has sent other books under the same id, and they are answered already."""
    with Client(one.gateway).job("books", **HOW) as other:
        row = {"Title": "x", "authors": "['a']", "publishedDate": "1999", "categories": "['b']",
               "publisher": None}  # fmt: skip
        other.send("books", [row])
        other.end("books")
        other.result("q1")
        early = Early()
        mine = submission(books, job_id=other.id)
        with (
            Client(one.gateway).gateways() as gateways,
            pytest.raises(ConflictError, match=r"other content|has ended with"),
        ):
            submit(mine, gateways, early)
        assert early.answers == []
        other.cancel()


def test_resuming_sends_what_is_missing(two: Cluster, books: Path, expected: Answers) -> None:
    class Stops(Watching):
        def sent(self, table: str, batch: BatchHeader) -> None:
            if table == "reviews" and batch.number == 6:
                raise InterruptedError

    given = submission(books)
    with Client(two.gateway).gateways() as gateways, pytest.raises(InterruptedError):
        submit(given, gateways, Stops())
    before = len(puts(two))
    again = submission(books, resume=given.job_id)
    check(answers_through(two, again, None), expected)
    batches = [path for method, path in puts(two)[before:] if "reviews/batches/" in path]
    repeated = [path for path in batches if int(path.rpartition("/")[2]) < 7]
    assert len(repeated) == 1, "one of the file, so that the gateway compares its header, too"
    done = submission(books, resume=given.job_id)
    check(answers_through(two, done, None), expected)  # it is done: only its ends are compared


def puts(found: Cluster) -> list[tuple[str, str]]:
    return [one for server in found.servers for one in server.unreliable.asked if one[0] == "PUT"]


@pytest.mark.parametrize("is_done", [False, True])
def test_a_file_that_changed_is_never_mixed_in(
    is_done: bool, one: Cluster, books: Path, tmp_path: Path
) -> None:
    class Stops(Watching):
        def sent(self, table: str, batch: BatchHeader) -> None:
            if table == "reviews" and batch.number == 6 and not is_done:
                raise InterruptedError

    given = submission(books)
    with Client(one.gateway).gateways() as gateways:
        try:
            submit(given, gateways, Stops())
        except InterruptedError:
            assert not is_done
    for name in ("books_data.csv", "Books_rating.csv"):
        text = (books / name).read_text()
        (tmp_path / name).write_text(text.replace("wonderful", "miserable"))
    again = submission(tmp_path, resume=given.job_id)
    complaint = "has ended with" if is_done else "the file changed"
    with (
        Client(one.gateway).gateways() as gateways,
        pytest.raises(ConflictError, match=complaint),
    ):
        submit(again, gateways)


def test_names_of_columns_that_changed_places_are_never_mixed_in(
    one: Cluster, books: Path, tmp_path: Path
) -> None:
    """The records are the same, and so are the digests of all batches and of the end."""

    class Stops(Watching):
        def sent(self, table: str, batch: BatchHeader) -> None:
            if table == "reviews" and batch.number == 6:
                raise InterruptedError

    given = submission(books)
    with Client(one.gateway).gateways() as gateways, pytest.raises(InterruptedError):
        submit(given, gateways, Stops())
    (tmp_path / "books_data.csv").write_bytes((books / "books_data.csv").read_bytes())
    header, _, records = (books / "Books_rating.csv").read_text().partition("\n")
    names = header.split(",")
    names[2:] = reversed(names[2:])
    (tmp_path / "Books_rating.csv").write_text(f"{','.join(names)}\n{records}")
    again = submission(tmp_path, resume=given.job_id)
    with (
        Client(one.gateway).gateways() as gateways,
        pytest.raises(ConflictError, match="the file changed"),
    ):
        submit(again, gateways)


def test_a_job_is_resumed_with_the_same_questions(one: Cluster, books: Path) -> None:
    given = submission(books)
    with Client(one.gateway).gateways() as gateways:
        gateways.create(given.job_id, given.request(given.options))
    other = submission(books, queries=("q1",), resume=given.job_id)
    with (
        Client(one.gateway).gateways() as gateways,
        pytest.raises(ConflictError, match="was started with another application, queries"),
    ):
        submit(other, gateways)


def test_strict_fails_with_the_rejected_row(one: Cluster, books: Path) -> None:
    with pytest.raises(RejectedRowError, match=r"Books_rating\.csv line \d+: review/score"):
        Client(one.gateway).run("books", books, strict=True, **HOW)


def test_a_file_that_is_missing_cancels_the_job(one: Cluster, tmp_path: Path) -> None:
    client = Client(one.gateway)
    with pytest.raises(DataError, match=r"no file 'books_data\.csv'"):
        client.run("books", tmp_path)
    assert sorted(job.state for job in client.jobs())[0] == "cancelled"


class Unreadable(Held):
    """A file that fails in the middle."""

    def readinto(self, buffer: memoryview, /) -> int:
        if self._file.tell() > self._size // 2:
            self._file.close()
            raise DataError("cannot read it any further")
        return self._file.readinto(buffer)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_file_that_fails_in_the_middle(resumed: bool, one: Cluster, books: Path) -> None:
    """It cancels a job of its own; one that was resumed is left for the right file."""
    stream = Unreadable(books / "Books_rating.csv", threading.Event())
    given = Submission(
        find_application("books"),
        Sources(books, {"reviews": ["-"]}),
        options=Options(batch_bytes=BATCH_BYTES),
        standard_input=lambda: stream,
    )
    if resumed:
        with Client(one.gateway).gateways() as gateways:
            gateways.create(given.job_id, given.request(given.options))
        given = replace(given, resume=given.job_id)
    with (
        Client(one.gateway).gateways() as gateways,
        pytest.raises(DataError, match="cannot read it any further"),
    ):
        submit(given, gateways)
    outcome = Client(one.gateway).status(given.job_id).outcome
    assert (outcome.state if outcome else "running") == ("running" if resumed else "cancelled")


def test_a_column_that_is_missing_fails_the_job(one: Cluster, books: Path, tmp_path: Path) -> None:
    (tmp_path / "books_data.csv").write_text("Name\nDune\n")
    with pytest.raises(JobError, match="no column 'Title'"):
        Client(one.gateway).run("books", tmp_path, "q1")


def rows_of(path: Path) -> pa.Table:
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    texts = pyarrow.csv.ConvertOptions(strings_can_be_null=True, column_types={
        name: pa.string() for name in ("Id", "review/score", "publishedDate", "publisher")
    })  # fmt: skip
    return pyarrow.csv.read_csv(path, parse_options=options, convert_options=texts)


@pytest.mark.parametrize("form", ["dictionaries", "tuples", "table", "batches", "polars"])
def test_rows_of_a_program_give_the_answers_of_the_files(
    form: str, one: Cluster, books: Path, expected: Answers
) -> None:
    with Client(one.gateway).job("books", **HOW) as job:
        assert job.tables == ("books", "reviews")
        for table, name in (("books", "books_data.csv"), ("reviews", "Books_rating.csv")):
            found = rows_of(books / name)
            match form:
                case "dictionaries":
                    job.send(table, iter(found.to_pylist()))
                case "tuples":
                    rows = [tuple(row.values()) for row in found.to_pylist()]
                    job.send(table, rows[:7], found.column_names)
                    job.send(table, (row for row in rows[7:]), found.column_names)
                case "table":
                    job.send(table, found)
                case "batches":
                    job.send(table, found.to_batches(max_chunksize=100))
                case "polars":
                    job.send(table, polars.from_arrow(found))
            job.end(table)
        check(job.results(), expected)
        assert job.result("q1").table.equals(expected["q1"].table)
        assert job.status().outcome is not None


def test_a_job_says_what_it_lacks(one: Cluster) -> None:
    with Client(one.gateway).job("books", "q1") as job:
        job.send("reviews", [{"any": "thing"}])  # q1 does not read them
        with pytest.raises(UsageError, match="has no table 'films'"):
            job.send("films", [])
        with pytest.raises(UsageError, match="table books has not ended"):
            job.results()
        with pytest.raises(UsageError, match=r"call end\('books'\) first"):
            job.result("q1")
        job.end()
        with pytest.raises(UsageError, match="table books has ended"):
            job.send("books", [])
        assert job.results()["q1"].rows() == []
    with pytest.raises(ZeroDivisionError), Client(one.gateway).job("books", "q1") as job:
        raise ZeroDivisionError
    outcome = Client(one.gateway).status(job.id).outcome
    assert outcome is not None
    assert outcome.state == "cancelled"


def test_rows_are_previewed_once_before_the_table_ends(one: Cluster, books: Path) -> None:
    with Client(one.gateway).job("books", ["q1"], **HOW) as job:
        rows = rows_of(books / "books_data.csv").to_pylist()
        job.send("books", rows * 5)
        preview = job.preview("q1")
        first = next(preview)
        job.send("books", rows)
        job.end("books")
        shown = [first, *preview]
        found = job.results()["q1"].rows()
    key = repr
    assert sorted(shown, key=key) == sorted(found, key=key)
    assert len(found) == 60


def test_who_runs_too_many_jobs_is_told_which_quota(books: Path) -> None:
    with cluster(token="right") as found:
        found.quotas = Quotas(jobs=0)
        client = Client(found.gateway, token="right", patience_seconds=0.0)
        with pytest.raises(JobError, match="quota jobs: at most 0 jobs"):
            client.run("books", books, ["q1"], **HOW)
        found.quotas = Quotas(jobs=1)
        assert list(client.run("books", books, ["q1"], **HOW)) == ["q1"]


SPREAD = {"job-2": [1], "job-3": [1], "job-4": [0], "job-5": [0]}


def test_submissions_of_one_client_go_to_different_gateways(two: Cluster, books: Path) -> None:
    with Client(two.gateway) as client:
        for job_id in SPREAD:
            with client.gateways() as gateways:
                submit(submission(books, queries=("q1",), job_id=job_id), gateways)
    assert {job_id: two.asked_about(job_id) for job_id in SPREAD} == SPREAD


def test_streamed_jobs_of_one_client_go_to_different_gateways(two: Cluster, books: Path) -> None:
    with Client(two.gateway) as client:
        for job_id in SPREAD:
            given = submission(books, queries=("q1",), job_id=job_id)
            with StreamedJob(given, client.gateways()) as job:
                job.end()
                job.results()
    assert {job_id: two.asked_about(job_id) for job_id in SPREAD} == SPREAD
