"""The gateway as a process: how it starts, what it refuses, how it leaves."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.harness.certificates import make_authority, make_server
from tests.harness.gateway_place import ALICE, BATCH, BERTA, batches, job_content, write_token
from tests.harness.gateway_server import head
from tests.harness.waiting import GUARD_SECONDS, until

COMMAND = [sys.executable, "-m", "caudal", "gateway", "--broker", "memory:"]


@dataclass
class GatewayProcess:
    """A gateway that listens, and every line that it logs."""

    process: subprocess.Popen[str]
    port: int
    lines: list[str] = field(default_factory=list)

    def client(self, token: str = ALICE) -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=GUARD_SECONDS
        )

    def leave(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(GUARD_SECONDS)


@contextmanager
def running(folder: Path, *options: str) -> Iterator[GatewayProcess]:
    with running_on(str(folder / "store"), *options) as gateway:
        yield gateway


@contextmanager
def running_on(
    store: str,
    *options: str,
    before: tuple[str, ...] = (),
    environment: Mapping[str, str] = os.environ,
) -> Iterator[GatewayProcess]:
    """A gateway on this store, which logs these events before it listens."""
    command = [*COMMAND, "--store", store, "--port", "0", *options]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**environment}
    ) as process:
        assert process.stderr
        try:
            for event in before:
                assert json.loads(process.stderr.readline())["event"] == event
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
        [*COMMAND, *options], capture_output=True, text=True, check=False, timeout=GUARD_SECONDS
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
        assert gateway.process.wait(GUARD_SECONDS) == 0
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


@pytest.mark.long
def test_a_client_that_never_returns_leaves_nothing(tmp_path: Path, tokens: Path) -> None:
    content = json.loads(job_content())
    content["options"] |= {"silent_seconds": 600.0, "keep_seconds": 0.0}
    options = ("--token-file", str(tokens), "--job-timeout", "5")
    with running(tmp_path, *options) as gateway, gateway.client() as client:
        assert client.put("/jobs/j", json=content).status_code == 201
        job = tmp_path / "store" / "jobs" / "j"
        until(lambda: not any(path.is_file() for path in job.rglob("*")))
        assert client.get("/jobs").json() == {"jobs": [], "next": None}


def caudal(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "caudal", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_tokens_come_and_go_while_it_runs(tmp_path: Path, tokens: Path) -> None:
    with running(tmp_path, "--token-file", str(tokens)) as gateway:
        made = caudal("token", "new", "carla", "--token-file", str(tokens))
        assert made.returncode == 0, made.stderr
        with gateway.client(made.stdout.strip()) as client:
            until(lambda: client.get("/jobs").status_code == 200)
            assert client.put("/jobs/j", content=job_content()).status_code == 201
            assert caudal("token", "revoke", "carla", "--token-file", str(tokens)).returncode == 0
            until(lambda: client.get("/jobs").status_code == 401)
        with gateway.client() as client:
            assert client.get("/jobs").status_code == 200, "others do not notice"
    assert made.stdout.strip() not in "".join(gateway.lines)


def test_quotas_change_while_it_runs(tmp_path: Path, tokens: Path) -> None:
    quotas = tmp_path / "cluster.toml"
    quotas.write_text("[quotas]\njobs = 1\n")
    audit = tmp_path / "audit.jsonl"
    options = ("--token-file", str(tokens), "--quotas", str(quotas), "--audit", str(audit))
    with running(tmp_path, *options) as gateway, gateway.client() as client:
        assert client.put("/jobs/one", content=job_content()).status_code == 201
        refused_ = client.put("/jobs/two", content=job_content())
        assert (refused_.status_code, refused_.json()["error"]["quota"]) == (429, "jobs")
        quotas.write_text("[quotas]\njobs = 2\n")
        until(lambda: client.put("/jobs/two", content=job_content()).is_success)
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [lines[0]["action"], lines[1]["code"]] == ["create", "over_quota"]
    assert lines[-1]["job"] == "two"


def test_a_hostile_owner_does_not_stop_an_honest_one(tmp_path: Path, tokens: Path) -> None:
    """Alice holds every socket, body and stream that she can get; Berta's job is taken."""
    url = "/jobs/{job}/tables/people/batches/0"
    with running(tmp_path, "--token-file", str(tokens)) as gateway, ExitStack() as stack:

        def hold(start: bytes) -> None:
            address = ("127.0.0.1", gateway.port)
            connection = socket.create_connection(address, timeout=GUARD_SECONDS)
            stack.enter_context(connection).sendall(start)

        with gateway.client() as alice:
            assert alice.put("/jobs/a", content=job_content()).status_code == 201
        huge = {"content_length": str(64 << 20), "content_type": BATCH}
        for _ in range(8):
            hold(head("PUT", url.format(job="a"), **huge))
        for number in range(100):
            hold(head("PUT", f"/jobs/slow{number}", content_length="1000") + b"{")
        for _ in range(300):
            hold(head("GET", "/jobs/a/events"))
        for _ in range(300):
            hold(b"GET /jobs HTTP/1.1\r\nauthoriz")
        with gateway.client(BERTA) as berta:
            assert berta.put("/jobs/b", content=job_content()).status_code == 201
            for number, data in enumerate(batches("people")):
                path = f"/jobs/b/tables/people/batches/{number}"
                answer = berta.put(path, content=data, headers={"content-type": BATCH})
                assert answer.status_code == 201, answer.text
            with berta.stream("GET", "/jobs/b/events") as stream:
                assert next(stream.iter_lines()) == "event: progress"
            assert berta.delete("/jobs/b").json()["state"] == "cancelled"


def test_the_commands_of_clients_speak_tls(tmp_path: Path, tokens: Path) -> None:
    authority = make_authority(tmp_path)
    pair = make_server(tmp_path, authority, "gateway")
    token = tmp_path / "alice.token"
    token.write_text(ALICE)
    files = ("--tls-certificate", str(pair.certificate), "--tls-key", str(pair.key))
    with running(tmp_path, "--token-file", str(tokens), *files) as gateway:
        where = ("--gateway", f"https://localhost:{gateway.port}", "--token-file", str(token))
        trusting = caudal("quotas", *where, "--ca", str(authority.certificate))
        assert "alice  jobs  0 of 64" in trusting.stdout, trusting.stderr
        doubting = caudal("jobs", *where)
        assert doubting.returncode == 2
        assert "--ca FILE" in doubting.stderr
        assert len(doubting.stderr.splitlines()) == 1
    status, line = refused("--store", str(tmp_path), "--tls-key", str(pair.key))
    assert (status, line) == (2, "caudal: TLS needs both --tls-certificate and --tls-key")


def test_it_serves_and_leaves_while_its_store_hangs() -> None:
    """The store accepts connections and never answers. Clients must not find a closed port."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{hanging.getsockname()[1]}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
        before = ("the store does not answer yet",)
        on_s3 = running_on("s3://bucket/here", before=before, environment=environment)
        with on_s3 as gateway, gateway.client() as client:
            assert client.get("/healthz").json() == {"status": "alive"}
            assert client.get("/readyz").status_code == 503
            assert gateway.leave() == 0
    assert json.loads(gateway.lines[-1])["event"] == "stopped"


def test_an_older_token_file_is_told_with_the_way_out(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("alice:her-secret\n")
    status, line = refused("--store", str(tmp_path), "--token-file", str(old))
    assert status == 2
    assert "caudal token new NAME" in line
    assert "her-secret" not in line


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
