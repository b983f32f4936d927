"""A real server on a free port of loopback, in a thread, and raw sockets to it."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from caudal.gateway.process import GatewaySettings, Server, listening, make_server
from caudal.process.certificates import Certificate
from tests.harness.gateway_place import ALICE, Place
from tests.harness.waiting import GUARD_SECONDS


@dataclass(frozen=True)
class Running:
    """Where a server listens."""

    port: int
    server: Server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=GUARD_SECONDS)

    def says(self, *pieces: bytes) -> bytes:
        """What is answered until the server closes the connection."""
        with self.raw() as connection:
            for piece in pieces:
                connection.sendall(piece)
            return read_all(connection)


@contextmanager
def running(place: Place, certificate: Certificate | None = None) -> Iterator[Running]:
    settings = GatewaySettings(
        "g1", port=0, limits=place.limits, grace_seconds=5.0, certificate=certificate
    )
    server = make_server(settings, place.service)
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            yield Running(port, server)
        finally:
            place.stopping = True
            server.should_exit = True
            thread.join(GUARD_SECONDS)
            assert not thread.is_alive()


def read_all(connection: socket.socket) -> bytes:
    found = b""
    while True:
        try:
            piece = connection.recv(65_536)
        except ConnectionResetError:
            return found
        if not piece:
            return found
        found += piece


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """One whole answer of known length: status, headers, body."""
    with connection.makefile("rb") as file:
        status = int(file.readline().split()[1])
        headers = {}
        while (line := file.readline().strip()) != b"":
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return status, headers, file.read(int(headers.get("content-length", "0")))


def head(method: str, path: str, *, token: str = ALICE, host: str = "x", **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", f"authorization: Bearer {token}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def code_in(answer: bytes) -> tuple[int, str]:
    """Status and code of a refusal as bytes."""
    start, _, body = answer.partition(b"\r\n\r\n")
    return int(start.split()[1]), json.loads(body)["error"]["code"]
