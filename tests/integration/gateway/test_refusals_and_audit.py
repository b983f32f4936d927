"""What is refused whatever the path, over real sockets, and what the audit log says of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.harness.gateway_place import ALICE, BATCH, BERTA, Place, create, job_content, send
from tests.harness.gateway_server import Running, code_in, head, read_answer, running

from caudal.gateway import audit
from caudal.gateway.audit import Audit
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.tokens import Tokens
from caudal.gateway.visits import Visit
from caudal.version import __version__


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit" / "g1.jsonl"


@pytest.fixture
def place(log: Path) -> Iterator[Place]:
    with Place(audit=Audit(log, "g1")) as made:
        yield made


@pytest.fixture
def server(place: Place) -> Iterator[Running]:
    with running(place) as found:
        yield found


def lines(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_every_answer_names_the_version(place: Place) -> None:
    answers = [place.client().get(path) for path in ("/healthz", "/jobs/none", "/", "/no/such")]
    assert [one.headers["caudal-version"] for one in answers] == [__version__] * 4
    assert {one.status_code for one in answers} >= {200, 404}


def test_two_lengths_are_refused_and_what_follows_is_not_read(server: Running, log: Path) -> None:
    """A request hidden in the body of another must never be answered."""
    hidden = head("DELETE", "/jobs/j")
    for start in (
        head("PUT", "/jobs/j", content_length="5", transfer_encoding="chunked"),
        head("PUT", "/jobs/j", transfer_encoding="chunked", content_length="5"),
        head("GET", "/healthz", transfer_encoding="chunked", content_length="0"),
        head("GET", "/nothing", transfer_encoding="Chunked", content_length="0"),
    ):
        answer = server.says(start + b"0\r\n\r\n" + hidden)
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in answer
        assert code_in(answer) == (400, "bad_request")
        assert f"caudal-version: {__version__}".encode() in answer
    assert [line["action"] for line in lines(log)] == ["refuse"] * 4
    assert not any("DELETE" in str(line) for line in lines(log))


@pytest.mark.parametrize(
    "lengths",
    [
        b"content-length: 5\r\ncontent-length: 6",
        b"content-length: 5, 6",
        b"content-length: " + b"0" * 5_000 + b"5",
        b"content-length: +5",
        b"content-length : 5",
        b"transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        b"transfer-encoding: identity",
        b"transfer-encoding: chunked, gzip",
        b"transfer-encoding:\x0bchunked",
        b"host: y",
    ],
)
def test_what_two_servers_could_read_differently_is_no_http(
    server: Running, lengths: bytes
) -> None:
    start = head("PUT", "/jobs/j").replace(b"\r\n\r\n", b"\r\n" + lengths + b"\r\n\r\n")
    answer = server.says(start + b"12345")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert code_in(answer) == (400, "bad_request")


NAMES = {
    "localhost": True, "LOCALHOST:8421": True, "127.0.0.1": True, "127.1.2.3:80": True,
    "[::1]:8421": True, "[::1]": True,
    "evil.example": False, "evil.example:8421": False, "localhost.evil.example": False,
    "127.0.0.1.evil.example": False, "10.0.0.1": False, "[::2]": False, "localhost:x": False,
    "0.0.0.0": False, "user@localhost": False,
}  # fmt: skip


def test_without_tokens_only_names_of_loopback_are_answered(log: Path) -> None:
    """A page of the web whose name was made to point here sends its own name."""
    with Place(tokens=Tokens(), audit=Audit(log, "g1")) as place, running(place) as server:
        for host, is_answered in NAMES.items():
            for path in ("/jobs", "/metrics", "/openapi.json", "/nothing"):
                answer = server.says(head("GET", path, host=host, connection="close"))
                status = int(answer.split()[1])
                assert (status != 421) is is_answered, (host, path)
        assert code_in(server.says(b"GET /jobs HTTP/1.0\r\n\r\n")) == (421, "wrong_host")
        old = b"GET /jobs HTTP/1.0\r\nhost: localhost\r\n\r\n"
        assert server.says(old).startswith(b"HTTP/1.1 200")


def test_with_tokens_any_name_is_answered(server: Running) -> None:
    start = head("GET", "/jobs", host="gateway.example", connection="close")
    assert server.says(start).startswith(b"HTTP/1.1 200")


def test_every_create_cancel_fetch_and_refusal_is_one_line(place: Place, log: Path) -> None:
    alice, berta = place.client(), place.client(BERTA)
    create(alice)
    alice.put("/jobs/j", content=job_content())
    send(alice, "people")
    alice.get("/jobs/j/results/places")  # not ready: no refusal
    place.work()
    alice.get("/jobs/j/results/adults")
    alice.get("/jobs/j")
    alice.get("/jobs/j?small=true")  # brings the result along
    berta.get("/jobs/j/results/adults")
    alice.delete("/jobs/j")
    place.client("somebody-else's").get("/jobs")
    alice.get("/nothing")
    found = [
        (one["action"], one.get("owner"), one.get("job"), one["status"], one.get("code"))
        for one in lines(log)
    ]
    assert found == [
        ("create", "alice", "j", 201, None),
        ("create", "alice", "j", 200, None),
        ("fetch", "alice", "j", 200, None),
        ("fetch", "alice", "j", 200, None),
        ("refuse", "berta", "j", 404, "no_job"),
        ("cancel", "alice", "j", 200, None),
        ("refuse", None, None, 401, "no_token"),
        ("refuse", None, None, 404, "no_path"),
    ]
    assert all(line["gateway"] == "g1" and line["time"] for line in lines(log))
    text = log.read_text()
    assert ALICE not in text
    assert "somebody-else" not in text
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_address_is_that_of_the_connection(server: Running, log: Path) -> None:
    """No header is believed, not even from this machine."""
    headers = {"x-forwarded-for": "6.6.6.6", "forwarded": "for=6.6.6.6"}
    httpx.get(f"{server.url}/jobs", headers=headers)
    assert [line["address"] for line in lines(log)] == ["127.0.0.1"]


def test_a_log_is_bounded_and_rotated(log: Path) -> None:
    now = [0.0]
    noted = Audit(log, "g", most_bytes=1000, now=lambda: now[0])
    for number in range(200):
        visit = Visit("alice", action="create", job=f"j{number}")
        noted.note(visit, "PUT", "/jobs/j", 201, "127.0.0.1")
    files = sorted(path.name for path in log.parent.iterdir())
    assert files == ["g1.jsonl", *(f"g1.jsonl.{number}" for number in range(1, audit.KEPT + 1))]
    assert all(path.stat().st_size <= 1000 for path in log.parent.iterdir())
    assert lines(log)[-1]["job"] == "j199"


def test_refusals_without_end_push_nothing_out(log: Path) -> None:
    now = [0.0]
    noted = Audit(log, "g", now=lambda: now[0])
    for _ in range(10_000):
        noted.note(Visit(code="no_token"), "GET", "/" + "x" * 5000, 401, "127.0.0.1")
    noted.note(Visit("alice", action="create", job="j"), "PUT", "/jobs/j", 201, "127.0.0.1")
    assert len(lines(log)) == 51
    assert lines(log)[-1]["owner"] == "alice"
    now[0] = 1.0
    noted.note(Visit(code="no_token"), "GET", "/", 401, "127.0.0.1")
    assert lines(log)[-1]["left_out"] == 9_950
    assert log.stat().st_size < 30_000


def test_a_log_that_cannot_be_written_refuses_nobody(tmp_path: Path) -> None:
    (tmp_path / "audit").touch()
    with Place(audit=Audit(tmp_path / "audit" / "g1.jsonl")) as place:
        create(place.client())


def test_a_body_slower_than_the_least_rate_is_408() -> None:
    """It never pauses for long, and would have taken two minutes."""
    slow = GatewayLimits(slow_seconds=0.3, least_rate=1 << 20)
    with Place(limits=slow) as place, running(place) as server, server.raw() as connection:
        create(place.client())
        url = "/jobs/j/tables/people/batches/0"
        connection.sendall(head("PUT", url, content_length=str(8 << 20), content_type=BATCH))
        connection.sendall(b"x" * 100_000)
        status, _, body = read_answer(connection)
    assert status == 408
    assert b"bytes a second" in body
