"""A gateway that lies, or never stops talking: one clear error, or the answer of another one."""

import base64
import gzip
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpcore
import msgspec
import pytest
from tests.harness.lying_gateway import PIECE, Hostile, Spoilt, fair, hostile
from tests.harness.memory_cluster import Cluster
from tests.unit.client.conftest import BATCH_BYTES, PARAMETERS, check

from caudal.client import bodies, events
from caudal.client import pace as pacing
from caudal.client.bodies import MOST_REPLY_BYTES
from caudal.client.client import Client
from caudal.client.http import HttpGateways
from caudal.errors import FormatError, UnreachableError, UsageError
from caudal.formats import frame, mapped, outputs
from caudal.formats.keys import REJECTS
from caudal.formats.outputs import Whose
from caudal.jobs.upload import News
from caudal.results.answers import Answers

BUFFERS = 32 << 20  # of both ends of a connection: what may be sent before its end is noticed
GARBAGE = b"\x17" * PIECE


@dataclass(frozen=True)
class Place:
    """A real gateway, a hostile one before it, and a job that is done, with its objects."""

    honest: str
    hostile: Hostile
    job: str
    run: str
    other: str  # another job with the same queries
    results: dict[tuple[str, str], bytes]  # by job and query

    def gateways(self, *addresses: str, patience: float = 20.0) -> HttpGateways:
        return HttpGateways(addresses, patience_seconds=patience)

    def whose(self, query: str) -> Whose:
        return Whose(self.job, self.run, query)


@pytest.fixture(scope="module")
def done(one: Cluster, books: Path) -> Iterator[Place]:
    client = Client(one.gateway)
    for _ in range(2):
        client.run("books", books, ["q1", "q2"], parameters=PARAMETERS, batch_bytes=BATCH_BYTES)
    jobs = [job.id for job in client.jobs()]
    with client.gateways() as gateways, hostile(one.gateway) as found:
        runs = {job: gateways.status(job).run for job in jobs}
        results = {
            (job, query): gateways.result(job, query, runs[job])
            for job in jobs
            for query in ("q1", "q2", REJECTS)
        }
        yield Place(one.gateway, found, jobs[0], runs[jobs[0]], jobs[1], results)


@pytest.fixture
def place(done: Place) -> Iterator[Place]:
    done.hostile.sent = 0
    done.hostile.asked.clear()
    yield done
    done.hostile.spoil = fair


def another_run(place: Place, true: bytes) -> bytes:
    index, rows = outputs.decode_result(true, "")
    return outputs.encode_result(Whose(place.job, "0" * 32, "q1"), index.title, rows)


def of_a_terabyte(place: Place) -> bytes:
    span = mapped.Span(0, 1 << 50, 1, "ab")
    return frame.encode(
        outputs.RESULT_MAGIC, outputs.ResultHeader("q1", "", span, place.job, place.run)
    )


def of_a_terabyte_of_q1(place: Place) -> dict[str, bytes]:
    return {"q1": of_a_terabyte(place)}


def flipped(true: bytes) -> bytes:
    return true[:-9] + bytes([true[-9] ^ 4]) + true[-8:]


def index_without_end(true: bytes) -> bytes:
    return true[:8] + b"\xff\xff\xff\xff" + true[12:44]


WRONG_RESULTS: dict[str, tuple[Callable[[Place, bytes], Spoilt], str]] = {
    "another query": (
        lambda place, true: Spoilt(place.results[place.job, "q2"]),
        "is a result of q2 of job .*, not of q1 of job",
    ),
    "another job": (
        lambda place, true: Spoilt(place.results[place.other, "q1"]),
        "is a result of q1 of job .*, not of q1 of job",
    ),
    "another run": (
        lambda place, true: Spoilt(another_run(place, true)),
        "is a result of q1 of job .*, run 0000.*, not of q1 of job",
    ),
    "one bit": (lambda place, true: Spoilt(flipped(true)), "does not match its digest"),
    "a byte more": (lambda place, true: Spoilt(true + b"x"), "should have .* but has more"),
    "a byte more, announced": (
        lambda place, true: Spoilt(true + b"x", announced=len(true) + 1),
        "should have .* bytes, but Content-Length is",
    ),
    "a byte less": (lambda place, true: Spoilt(true[:-1]), "should have .* but has only"),
    "no end": (lambda place, true: Spoilt(true, forever=GARBAGE), "should have .* but has more"),
    "no beginning": (lambda place, true: Spoilt(b"", forever=GARBAGE), "is not a result"),
    "an index without end": (
        lambda place, true: Spoilt(index_without_end(true), forever=GARBAGE),
        "an index of 4294967295 bytes: at most",
    ),
    "a terabyte": (
        lambda place, true: Spoilt(of_a_terabyte(place), forever=GARBAGE),
        "claims .* bytes, more than this machine can hold",
    ),
    "packed": (
        lambda place, true: Spoilt(gzip.compress(true), headers={"Content-Encoding": "gzip"}),
        "compressed as 'gzip'",
    ),
    "nothing": (lambda place, true: Spoilt(b""), "is not a result"),
    "a damaged store": (
        lambda place, true: Spoilt(
            b'{"error":{"code":"damaged","message":"jobs/j/r/results/q1 is damaged"}}', 500
        ),
        "jobs/j/r/results/q1 is damaged",
    ),
}


@pytest.mark.parametrize("kind", WRONG_RESULTS)
def test_what_is_not_the_result_is_never_taken_for_it(kind: str, place: Place) -> None:
    spoil, complaint = WRONG_RESULTS[kind]
    true = place.results[place.job, "q1"]
    place.hostile.spoil = lambda path, body: spoil(place, body) if "q1" in path else None
    with (
        place.gateways(place.hostile.address) as gateways,
        pytest.raises(FormatError, match=f"{place.hostile.address}: .*{complaint}"),
    ):
        gateways.result(place.job, "q1", place.run)
    assert len(place.hostile.asked) == 3, "asked again, and not for ever"
    assert place.hostile.sent < 3 * BUFFERS, "no more is read than was to come"
    with place.gateways(place.hostile.address, place.honest) as gateways:
        assert gateways.result(place.job, "q1", place.run) == true
    assert len(place.hostile.asked) == 4, "the lie was noticed, and another gateway asked"


WRONG_SMALL: dict[str, Callable[[Place], dict[str, bytes]]] = {
    "another query": lambda place: {"q1": place.results[place.job, "q2"]},
    "another job": lambda place: {"q1": place.results[place.other, "q1"]},
    "another run": lambda place: {"q1": another_run(place, place.results[place.job, "q1"])},
    "one bit": lambda place: {"q1": flipped(place.results[place.job, "q1"])},
    "a byte more": lambda place: {"q1": place.results[place.job, "q1"] + b"x"},
    "a byte less": lambda place: {"q1": place.results[place.job, "q1"][:-1]},
    "a terabyte": of_a_terabyte_of_q1,
    "nothing": lambda place: {"q1": b""},
    "a name that is a path": lambda place: {"../q1": place.results[place.job, "q1"]},
    "a query of another": lambda place: {"q9": place.results[place.job, "q1"]},
}


@pytest.mark.parametrize("kind", WRONG_SMALL)
def test_a_small_result_that_is_none_is_never_taken_for_it(kind: str, place: Place) -> None:
    """It comes with the status, and is checked as one that was fetched."""
    small = WRONG_SMALL[kind](place)

    def spoil(path: str, body: bytes) -> Spoilt:
        told = msgspec.json.decode(body)
        told["small"] = {name: base64.b64encode(one).decode() for name, one in small.items()}
        return Spoilt(msgspec.json.encode(told))

    place.hostile.spoil = spoil
    news = News(0, 0.01)
    with place.gateways(place.hostile.address) as alone, pytest.raises(FormatError):
        alone.status(place.job, news)
    with place.gateways(place.hostile.address, place.honest) as gateways:
        found = gateways.status(place.job, news).small
    assert found == {
        query: place.results[place.job, query] for query in ("q1", "q2", REJECTS) if query in found
    }
    assert found, "those of the honest gateway"


def test_a_result_that_breaks_off_is_asked_again(place: Place) -> None:
    true = place.results[place.job, "q1"]
    place.hostile.spoil = lambda path, body: Spoilt(body[:-1], announced=len(body))
    with (
        place.gateways(place.hostile.address, patience=0.2) as gateways,
        pytest.raises(UnreachableError, match=place.hostile.address),
    ):
        gateways.result(place.job, "q1", place.run)
    with place.gateways(place.hostile.address, place.honest) as gateways:
        assert gateways.result(place.job, "q1", place.run) == true


@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_reply_has_a_bound(status: int, place: Place) -> None:
    place.hostile.spoil = lambda path, body: Spoilt(body[:1], status, forever=b" " * PIECE)
    with (
        place.gateways(place.hostile.address) as gateways,
        pytest.raises(FormatError, match="sent a reply of more than 16 MiB"),
    ):
        gateways.status(place.job)
    assert place.hostile.sent < 3 * (MOST_REPLY_BYTES + BUFFERS)
    with place.gateways(place.hostile.address, place.honest) as gateways:
        assert gateways.status(place.job).run == place.run


def test_a_reply_that_takes_for_ever_is_given_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_REPLY_SECONDS", 0.0)
    place.hostile.spoil = lambda path, body: Spoilt(b"", forever=b" ")
    with (
        place.gateways(place.hostile.address) as gateways,
        pytest.raises(FormatError, match="took more than 0 seconds for a reply"),
    ):
        gateways.status(place.job)


@pytest.fixture
def dripping(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Every byte of the hostile gateway takes a second, and nothing that it sends is enough."""
    monkeypatch.setattr(pacing, "now", lambda: float(place.hostile.sent))
    monkeypatch.setattr(pacing, "LEAST_BYTES", 1 << 60)
    return place


@pytest.mark.parametrize("kind", ["its body", "its head", "interim answers"])
def test_a_result_that_drips_is_asked_of_another_gateway(kind: str, dripping: Place) -> None:
    place = dripping
    true = place.results[place.job, "q1"]
    drip = {
        "its body": Spoilt(true[:9], announced=1 << 40, forever=b" "),
        "its head": Spoilt(b"HTTP/1.1 200 OK\r\nx: ", raw=True, forever=b"x"),
        "interim answers": Spoilt(b"", raw=True, forever=b"HTTP/1.1 102 Processing\r\n\r\n"),
    }[kind]
    place.hostile.spoil = lambda path, body: drip
    with place.gateways(place.hostile.address, place.honest) as gateways:
        assert gateways.result(place.job, "q1", place.run) == true
    # What is still in flight after the end of the first connection moves the clock of this test, so
    # that the honest gateway may be given up once, too.
    assert place.hostile.sent < 3 * BUFFERS
    assert len(place.hostile.asked) <= 3
    with (
        place.gateways(place.hostile.address, patience=0.0) as gateways,
        pytest.raises(UnreachableError, match=r"no answer in time|was lost|an index of \d+ bytes"),
    ):
        gateways.result(place.job, "q1", place.run)


def test_interim_answers_without_end_are_no_answer(place: Place) -> None:
    """Also where they come quickly."""
    flood = Spoilt(b"", raw=True, forever=b"HTTP/1.1 102 Processing\r\n\r\n" * 999)
    place.hostile.spoil = lambda path, body: flood
    with place.gateways(place.hostile.address, place.honest) as gateways:
        true = place.results[place.job, "q1"]
        assert gateways.result(place.job, "q1", place.run) == true
    assert place.hostile.sent < BUFFERS


def test_a_line_of_events_that_drips_is_given_up(dripping: Place) -> None:
    place = dripping
    place.hostile.spoil = lambda path, body: Spoilt(b"data: ", forever=b"x")
    with (
        place.gateways(place.hostile.address, place.honest) as both,
        place.gateways(place.honest) as honest,
    ):
        shown = list(events.previews(both, place.job, "q1", lambda: False))
        assert shown == list(events.previews(honest, place.job, "q1", lambda: False))
        assert shown
    assert place.hostile.sent < BUFFERS


def test_a_pace_is_kept_for_each_time_of_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole may take as long as it likes."""
    time = [0.0]
    monkeypatch.setattr(pacing, "now", lambda: time[0])
    pace = pacing.Pace(10.0)
    for _ in range(100):
        pace.note(pacing.LEAST_BYTES)
        time[0] += 9.0
        assert 0.0 < pace.left() <= 10.0
    pace.begin()
    pace.note(pacing.LEAST_BYTES - 1)
    time[0] += 9.0
    assert pace.left() == 1.0
    time[0] += 1.0
    with pytest.raises(httpcore.ReadTimeout, match="65535 bytes in 10 seconds"):
        pace.left()


@pytest.mark.parametrize("seconds", ["nan", "-inf", "soon", "-1"])
def test_a_time_to_wait_is_a_time(seconds: str, place: Place) -> None:
    headers = {"Retry-After": seconds}
    place.hostile.spoil = lambda path, body: Spoilt(b"", 503, headers=headers)
    with (
        place.gateways(place.hostile.address, patience=0.0) as gateways,
        pytest.raises(UnreachableError, match="answered 503"),
    ):
        gateways.status(place.job)
    with place.gateways(place.hostile.address) as gateways:
        place.hostile.spoil = lambda path, body: (
            Spoilt(b"", 503, headers=headers) if len(place.hostile.asked) < 3 else None
        )
        assert gateways.status(place.job).run == place.run


def test_what_a_refusal_says_is_one_line_without_commands_for_a_terminal(place: Place) -> None:
    message = "wrong\n\x1b[2Jand \u202e" + "x" * 100_000
    body = msgspec.json.encode({"error": {"code": "bad_request", "message": message}})
    place.hostile.spoil = lambda path, true: Spoilt(body, 400)
    with place.gateways(place.hostile.address) as gateways, pytest.raises(UsageError) as caught:
        gateways.status(place.job)
    assert str(caught.value).startswith("wrong \\x1b[2Jand \\u202e" + "x")
    assert len(str(caught.value)) < 3_000


def test_a_packed_reply_is_not_unpacked(place: Place) -> None:
    bomb = gzip.compress(b" " * (64 << 20))
    headers = {"Content-Encoding": "gzip"}
    place.hostile.spoil = lambda path, body: Spoilt(bomb, headers=headers)
    with (
        place.gateways(place.hostile.address) as gateways,
        pytest.raises(FormatError, match="compressed as 'gzip'"),
    ):
        gateways.status(place.job)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"\xff", b'"run"'])
def test_a_reply_of_another_form(body: bytes, place: Place) -> None:
    place.hostile.spoil = lambda path, true: Spoilt(body)
    with (
        place.gateways(place.hostile.address) as gateways,
        pytest.raises(FormatError, match="sent an answer of unknown form"),
    ):
        gateways.status(place.job)
    with place.gateways(place.hostile.address, place.honest) as gateways:
        assert gateways.status(place.job).run == place.run


@pytest.mark.parametrize("name", ["../../q1", "/etc/q1", "q1\n", "", "unknown"])
@pytest.mark.parametrize("where", ["queries", "results", "previews"])
def test_a_query_has_a_name_that_may_be_that_of_a_file(name: str, where: str, place: Place) -> None:
    def spoil(path: str, body: bytes) -> Spoilt:
        status = msgspec.json.decode(body)
        status[where] = [*status[where], name]
        if name != "unknown":
            status["reads"][name] = ["books"]
        return Spoilt(msgspec.json.encode(status))

    place.hostile.spoil = spoil
    with (
        place.gateways(place.hostile.address) as gateways,
        pytest.raises(FormatError, match=r"names a query .*, which is invalid"),
    ):
        gateways.status(place.job)


def test_a_list_of_jobs_ends(place: Place) -> None:
    pages, places = itertools.count(), ("0000000002.j.r", "0000000001.j.r")

    def spoil(path: str, body: bytes) -> Spoilt:
        return Spoilt(msgspec.json.encode({"jobs": [], "next": places[next(pages) % 2]}))

    place.hostile.spoil = spoil
    with (
        place.gateways(place.hostile.address) as gateways,
        pytest.raises(FormatError, match=r"not in order: '0{9}1\.j\.r' after '0{9}2\.j\.r'"),
    ):
        list(gateways.jobs())


def test_a_table_that_nobody_has_is_not_sent(place: Place, books: Path) -> None:
    def spoil(path: str, body: bytes) -> Spoilt | None:
        if path.count("/") > 2 or b'"outcome"' in body:
            return None
        return Spoilt(body.replace(b'"books"', b'"passwords"'))

    place.hostile.spoil = spoil
    with pytest.raises(
        FormatError, match="asks for a table 'passwords', which the job does not have"
    ):
        Client(place.hostile.address).run("books", books, ["q1"], parameters=PARAMETERS)


EVENT = b"id: %d\nevent: rows\ndata: %b\n\n"
WRONG_EVENTS = {
    "a line without end": (Spoilt(b"data: ", forever=b"x" * PIECE), "sent a line of more than 1"),
    "data without end": (Spoilt(b"", forever=b"data: x" * 99 + b"\n"), "sent an event of more"),
    "no JSON": (Spoilt(EVENT % (0, b"rows")), "sent an event of unknown form"),
    "rows left out": (
        Spoilt(EVENT % (7, b'{"batch":7,"rows":[]}')),
        "sent rows of batch 7 instead of batch 0",
    ),
}


@pytest.mark.parametrize("kind", WRONG_EVENTS)
def test_a_stream_of_rows_has_bounds(
    kind: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_MOST_EVENT_BYTES", 1 << 20)
    spoilt, complaint = WRONG_EVENTS[kind]
    place.hostile.spoil = lambda path, body: replace(spoilt)
    with (
        place.gateways(place.hostile.address) as gateways,
        pytest.raises(FormatError, match=f"{place.hostile.address}: {complaint}"),
    ):
        list(events.previews(gateways, place.job, "q1", lambda: False))
    assert place.hostile.sent < 3 * BUFFERS
    with (
        place.gateways(place.hostile.address, place.honest) as both,
        place.gateways(place.honest) as honest,
    ):
        shown = list(events.previews(both, place.job, "q1", lambda: False))
        assert shown == list(events.previews(honest, place.job, "q1", lambda: False))
        assert shown


def test_a_whole_run_beside_a_liar(place: Place, books: Path, expected: Answers) -> None:
    """Every result that it gives is another one's: those of the honest gateway are taken."""
    lies = itertools.cycle(place.results.values())
    place.hostile.spoil = lambda path, body: Spoilt(next(lies)) if "/results/" in path else None
    client = Client(f"{place.hostile.address},{place.honest}")
    for _ in range(20):  # a job begins at the address that follows from its id
        answers = client.run("books", books, parameters=PARAMETERS, batch_bytes=BATCH_BYTES)
        check(answers, expected)
        if any("/results/" in path for path in place.hostile.asked):
            break
    assert any("/results/" in path for path in place.hostile.asked)
