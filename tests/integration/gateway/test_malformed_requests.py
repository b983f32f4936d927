"""What strangers send to a real server: half requests, slow ones, huge ones, no HTTP at all.

Nothing here waits for a moment to pass: each test reads until the server answers or closes.
"""

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from tests.harness.gateway_place import ALICE, BATCH, Place, batches, code_of, job_content
from tests.harness.gateway_server import Running, code_in, head, read_all, read_answer, running
from tests.harness.waiting import GUARD_SECONDS

from caudal.gateway.limits import GatewayLimits
from caudal.gateway.process import listening
from caudal.jobs.ports import Bounds

SHORT = GatewayLimits(
    head_seconds=1.0,
    idle_seconds=1.5,
    body_seconds=2.0,
    linger_seconds=1.0,
    bodies_bytes=100 << 10,
    bodies_seconds=0.2,
    batch_bytes=80 << 10,
    head_bytes=8 << 10,
    connections=40,
)
URL = "/jobs/j/tables/people/batches/0"


@pytest.fixture
def place() -> Iterator[Place]:
    with Place(limits=SHORT, bounds=Bounds(lane_limit=2)) as made:
        yield made


@pytest.fixture
def server(place: Place) -> Iterator[Running]:
    with running(place) as found:
        yield found
        answer = httpx.get(f"{found.url}/jobs", headers={"authorization": f"Bearer {ALICE}"})
        assert answer.status_code == 200, "and it serves others as before"


def make_job(server: Running) -> None:
    headers = {"authorization": f"Bearer {ALICE}"}
    url = f"{server.url}/jobs/j"
    answer = httpx.put(url, content=job_content(), headers=headers, timeout=GUARD_SECONDS)
    assert answer.status_code == 201


def test_what_is_no_http_is_400_in_the_usual_shape(server: Running) -> None:
    chance = random.Random(7)
    rubbish = [chance.randbytes(chance.randrange(1, 5000)) + b"\r\n\r\n" for _ in range(30)]
    rubbish += [b"GET\r\n\r\n", b"GET / HTTP/x\r\nhost: x\r\n\r\n", b"\x16\x03\x01\x02\x00" * 9]
    rubbish += [b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n"]
    for data in rubbish:
        answer = server.says(data)
        assert not answer or code_in(answer) == (400, "bad_request"), data[:40]


def test_a_head_that_is_too_large_is_refused(server: Running) -> None:
    start = head("GET", "/jobs", cookie="x" * 50_000, connection="close")
    assert code_in(server.says(start)) in ((400, "bad_request"), (431, "too_large"))
    assert code_in(server.says(b"GET /" + b"x" * 50_000)) == (400, "bad_request")


def test_half_a_head_does_not_hold_a_connection(server: Running) -> None:
    whole = head("GET", "/jobs")
    with ExitStack() as stack:
        connections = [stack.enter_context(server.raw()) for _ in range(5)]
        connections[0].sendall(whole)
        assert read_answer(connections[0])[0] == 200
        halves = (whole[:30], b"", b"G", whole[:20], whole[:-2])
        for connection, half in zip(connections, halves, strict=True):
            connection.sendall(half)
        assert [read_all(connection) for connection in connections] == [b""] * 5


def test_half_a_body_is_408(server: Running) -> None:
    make_job(server)
    for path, kind in (("/jobs/k", "application/json"), (URL, BATCH)):
        start = head("PUT", path, content_length="1000", content_type=kind)
        assert code_in(server.says(start, b"{" * 100)) == (408, "too_slow")


def test_a_body_that_trickles_is_408(server: Running) -> None:
    make_job(server)
    with server.raw() as connection:
        connection.sendall(head("PUT", URL, content_length="80000", content_type=BATCH))
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            status, _, _ = read_answer(connection)
        finally:
            stop.set()
            thread.join()
    assert status == 408


def test_a_client_that_leaves_in_the_middle_harms_nobody(server: Running, place: Place) -> None:
    make_job(server)
    for length in (0, 10, 500):
        with server.raw() as connection:
            connection.sendall(head("PUT", URL, content_length="1000", content_type=BATCH))
            connection.sendall(b"x" * length)
    with server.raw() as connection:
        connection.sendall(head("GET", "/jobs/j/events"))
        assert connection.recv(10)
    assert not place.broker.depths()["map-0"]  # type: ignore[index]


def test_a_huge_body_is_refused_by_its_announcement(server: Running) -> None:
    start = head("PUT", URL, content_length=str(10**12), content_type=BATCH)
    assert code_in(server.says(start)) == (413, "too_large")
    chunks = head("PUT", "/jobs/j", transfer_encoding="chunked")
    endless = b"fffff\r\n" + b" " * 0xFFFFF + b"\r\n"
    with server.raw() as connection:
        connection.sendall(chunks)
        try:
            for _ in range(100_000):
                connection.sendall(endless)
        except OSError:
            pass
        else:
            raise AssertionError("an endless body was taken to its end")


def test_a_full_gateway_refuses_before_the_body_comes(server: Running, place: Place) -> None:
    make_job(server)
    first, second, third = batches("people")
    with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {ALICE}"}) as client:
        for number, data in enumerate((first, second)):
            path = f"/jobs/j/tables/people/batches/{number}"
            assert client.put(path, content=data, headers={"content-type": BATCH}).is_success
    path = "/jobs/j/tables/people/batches/2"
    with server.raw() as connection:
        connection.sendall(
            head("PUT", path, content_length="70000", content_type=BATCH, expect="100-continue")
        )
        status, headers, _ = read_answer(connection)  # not 100, and nothing was sent
    assert status == 429
    assert int(headers["retry-after"]) >= 1
    with server.raw() as connection:  # who sends it all the same gets to read the answer
        connection.sendall(head("PUT", path, content_length="70000", content_type=BATCH))
        connection.sendall(b"x" * 70_000)
        assert read_answer(connection)[0] == 429
        place.work()
        good = head("PUT", path, content_length=str(len(third)), content_type=BATCH)
        connection.sendall(good + third)
        assert read_answer(connection)[0] == 201, "the connection is as good as new"


def test_bodies_in_memory_are_bounded(server: Running) -> None:
    make_job(server)
    start = head("PUT", URL, content_length="70000", content_type=BATCH, expect="100-continue")
    with server.raw() as one, server.raw() as other:
        one.sendall(start)
        assert one.recv(100).startswith(b"HTTP/1.1 100"), "this one has the room"
        other.sendall(start)
        status, headers, _ = read_answer(other)
        assert status == 429
        assert headers["retry-after"]
        assert read_answer(one)[0] == 408, "it never used it"


def test_too_many_connections_are_closed(server: Running) -> None:
    connections = [server.raw() for _ in range(SHORT.connections + 1)]
    try:
        assert read_all(connections[-1]) == b""
    finally:
        for connection in connections:
            connection.close()


def test_random_requests_never_meet_a_bug(server: Running) -> None:
    """Any method, any path, any headers, any body: an answer below 500, or a closed connection."""
    make_job(server)
    chance = random.Random(11)
    methods = ["GET", "PUT", "DELETE", "POST", "PATCH", "HEAD", "OPTIONS", "BREW"]
    parts = ["jobs", "j", "tables", "people", "batches", "results", "adults", "preview", "end", "0"]
    parts += ["..", "%2e%2e", "%00", "%ff", "-1", "rejects", "a" * 300, "", "job.json", "run0"]
    bodies = [b"", b"{}", b"[]", job_content(), batches("people")[0], b"\0" * 100]
    kinds = [BATCH, "application/json", "text/plain", "", "a;b;c"]
    for _ in range(300):
        path = "/" + "/".join(chance.choice(parts) for _ in range(chance.randrange(7)))
        if path.endswith(("events", "preview")):
            continue
        body = chance.choice(bodies)
        start = head(
            chance.choice(methods), path, content_length=str(len(body)),
            content_type=chance.choice(kinds), connection="close",
            accept=chance.choice(["*/*", "application/json", "x/y", ";;"]),
        )  # fmt: skip
        answer = server.says(start + body)
        assert not answer or int(answer.split()[1]) < 500, (start, answer[:200])


def test_small_answers_do_not_wait_for_acknowledgements() -> None:
    """A head and a body in two packets took 44 ms instead of 1 without this."""
    with listening("127.0.0.1", 0) as listener, socket.socket() as client:
        client.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_shape_of_every_refusal(server: Running) -> None:
    for method, path, expected in (
        ("GET", "/nothing", (404, "no_path")),
        ("POST", "/jobs/j", (405, "no_method")),
        ("GET", "/jobs/j", (404, "no_job")),
        ("TRACE", "/healthz", (405, "no_method")),
    ):
        headers = {"authorization": f"Bearer {ALICE}"}
        assert code_of(httpx.request(method, server.url + path, headers=headers)) == expected
