"""The gateway as a process: how it starts, what it refuses, how it leaves."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.gateway.place import ALICE, BATCH, BERTA, batches, job_content, write_token
from tests.services.waiting import until

COMMAND = [sys.executable, "-m", "caudal", "gateway", "--broker", "memory:"]
PATIENCE_SECONDS = 60.0


@dataclass
class GatewayProcess:
    """A gateway that listens, and every line that it logs."""

    process: subprocess.Popen[str]
    port: int
    lines: list[str] = field(default_factory=list)

    def client(self, token: str = ALICE) -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=PATIENCE_SECONDS
        )

    def leave(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)


@contextmanager
def running(folder: Path, *options: str) -> Iterator[GatewayProcess]:
    command = [*COMMAND, "--store", str(folder / "store"), "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            first = json.loads(process.stderr.readline())
            assert first["event"] == "listening", first
            found = GatewayProcess(process, first["port"])
            reader = threading.Thread(target=found.lines.extend, args=(process.stderr,))
            reader.start()
            yield found
        finally:
            process.kill()
            process.wait()
            reader.join()


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    for name, token in (("alice", ALICE), ("berta", BERTA)):
        write_token(path, name, token)
    return path


def refused(*options: str) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, *options], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    return done.returncode, done.stderr.strip()


def test_it_serves_and_leaves_when_asked(tmp_path: Path, tokens: Path) -> None:
    with running(tmp_path, "--token-file", str(tokens)) as gateway, gateway.client() as client:
        assert client.get("/readyz").json() == {"status": "ready"}
        assert client.put("/jobs/j", content=job_content()).status_code == 201
        with client.stream("GET", "/jobs/j/events") as stream:
            assert next(stream.iter_lines()) == "event: progress"
            assert gateway.leave() == 0, "an open stream does not hold it"
            with pytest.raises(httpx.ConnectError):
                client.get("/healthz")
    text = "".join(gateway.lines)
    assert json.loads(gateway.lines[-1])["event"] == "stopped"
    assert ALICE not in text
    assert "Traceback" not in text


def test_a_request_under_way_is_finished(tmp_path: Path, tokens: Path) -> None:
    """Half of a batch is sent, the gateway is asked to leave, and the other half still counts."""
    data = batches("people")[0]
    with running(tmp_path, "--token-file", str(tokens)) as gateway, gateway.client() as client:
        assert client.put("/jobs/j", content=job_content()).status_code == 201

        def body() -> Iterator[bytes]:
            yield data[:20]
            gateway.process.send_signal(signal.SIGTERM)
            until(lambda: gone(gateway.port))
            yield data[20:]

        headers = {"content-type": BATCH, "content-length": str(len(data))}
        url = "/jobs/j/tables/people/batches/0"
        assert client.put(url, content=body(), headers=headers).status_code == 201
        assert gateway.process.wait(PATIENCE_SECONDS) == 0
    with running(tmp_path, "--token-file", str(tokens)) as other, other.client() as client:
        assert client.get(url).status_code == 200, "any gateway knows it"


def gone(port: int) -> bool:
    """Does nobody listen there any more?"""
    try:
        httpx.get(f"http://127.0.0.1:{port}/healthz")
    except httpx.TransportError:
        return True
    return False


def test_two_gateways_on_one_store_are_one(tmp_path: Path, tokens: Path) -> None:
    option = ("--token-file", str(tokens))
    with running(tmp_path, *option) as one, running(tmp_path, *option) as other:
        with one.client() as client:
            assert client.put("/jobs/j", content=job_content()).status_code == 201
        one.process.kill()
        with other.client() as client:
            assert client.put("/jobs/j", content=job_content()).status_code == 200
            assert [job["id"] for job in client.get("/jobs").json()["jobs"]] == ["j"]
        with other.client(BERTA) as client:
            assert client.get("/jobs/j").status_code == 404


def test_a_client_that_never_returns_leaves_nothing(tmp_path: Path, tokens: Path) -> None:
    content = json.loads(job_content())
    content["options"] |= {"silent_seconds": 600.0, "keep_seconds": 0.0}
    options = ("--token-file", str(tokens), "--job-timeout", "5")
    with running(tmp_path, *options) as gateway, gateway.client() as client:
        assert client.put("/jobs/j", json=content).status_code == 201
        job = tmp_path / "store" / "jobs" / "j"
        until(lambda: not any(path.is_file() for path in job.rglob("*")))
        assert client.get("/jobs").json() == {"jobs": [], "next": None}


def test_it_does_not_serve_the_world_without_tokens(tmp_path: Path) -> None:
    status, line = refused("--store", str(tmp_path), "--host", "0.0.0.0")
    assert status == 2
    assert line.startswith("caudal: 0.0.0.0 can be reached from other machines: give --token-file")


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        status, line = refused("--store", str(tmp_path), "--port", str(gateway.port))
        assert (status, line.splitlines()[-1]) == (
            2,
            f"caudal: cannot listen on 127.0.0.1:{gateway.port}: Address already in use",
        )
    empty = tmp_path / "empty"
    empty.touch()
    status, line = refused("--store", str(tmp_path), "--token-file", str(empty))
    assert (status, line) == (
        2,
        f"caudal: the token file {empty} holds no token: `caudal token new NAME` adds one",
    )


def test_it_needs_no_environment(tmp_path: Path) -> None:
    assert "CAUDAL_STORE" not in os.environ
    status, line = refused()
    assert status == 2
    assert "--store" in line
