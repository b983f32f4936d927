"""Requests to an engine over a Unix socket, against a server that answers as an engine does."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

import pytest
from tests.harness.told_engine import EngineAnswers

from caudal.errors import EngineError, UsageError
from caudal.medic.engine import DockerEngine, whole_lines

LOG = [b"one\ntw", b"o\nthree"]


class _Answers(EngineAnswers):
    def do_GET(self) -> None:  # noqa: N802
        if self.path.startswith("/containers/w/logs?"):
            frames = [b"\x01\0\0\0" + len(piece).to_bytes(4, "big") + piece for piece in LOG]
            self._answer(200, b"".join(frames))
        elif self.path == "/containers/none/json":
            self._answer(404, b'{"message":"No such container: none"}')
        else:
            self._answer(200, json.dumps({"path": self.path}).encode())

    def do_POST(self) -> None:  # noqa: N802
        conflict = b'{"message":"Conflict: the name is taken"}'
        status, data = (304, b"") if self.path.endswith("/start") else (409, conflict)
        self._answer(status, data)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DockerEngine]:
    path = str(tmp_path / "engine.sock")
    with ThreadingUnixStreamServer(path, _Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield DockerEngine(path)
        server.shutdown()
        thread.join()


def test_a_refusal_has_the_words_of_the_engine(engine: DockerEngine) -> None:
    with pytest.raises(EngineError, match=r"refused \(409\): Conflict: the name is taken"):
        engine.post("/containers/create", {"name": "x"}, {"Image": "caudal"})
    assert engine.post("/containers/x/kill", fine=(409,)) is False


def test_a_refusal_counts_that_comes_before_the_request_is_read(engine: DockerEngine) -> None:
    """The engine hangs up while the request is being sent, for want of anybody who reads it."""
    more_than_waits_in_a_socket = {"Image": "x" * (8 << 20)}
    with pytest.raises(EngineError, match=r"refused \(409\): Conflict: the name is taken"):
        engine.post("/containers/create", {"name": "x"}, more_than_waits_in_a_socket)


def test_what_is_done_already_is_no_refusal(engine: DockerEngine) -> None:
    assert engine.post("/containers/x/start") is False


def test_what_does_not_exist_is_none(engine: DockerEngine) -> None:
    assert engine.get("/containers/none/json") is None
    assert engine.get("/containers/a b/json", {"all": "true"}) == {
        "path": "/containers/a%20b/json?all=true"
    }


def test_a_log_comes_without_the_headers_of_its_pieces(engine: DockerEngine) -> None:
    pieces = engine.log("/containers/w/logs", {"tail": 5})
    assert list(whole_lines(pieces)) == ["one", "two", "three"]


def test_an_engine_that_is_away_says_so(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="does not answer"):
        DockerEngine(str(tmp_path / "none.sock")).get("/version")


def test_the_address_is_a_unix_socket() -> None:
    assert DockerEngine.of(None).path == "/var/run/docker.sock"
    assert DockerEngine.of("unix:///tmp/d.sock").path == "/tmp/d.sock"
    with pytest.raises(UsageError, match="only unix://"):
        DockerEngine.of("tcp://127.0.0.1:2375")
