"""The metrics endpoint: loopback without a token, closed to strangers with one."""

import socket
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest
from prometheus_client import Counter
from tests.harness.waiting import GUARD_SECONDS, until

from caudal.errors import UsageError
from caudal.process import metrics
from caudal.process.metrics import new_registry, serving_metrics


def read(port: int | None, token: str | None = None) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics")
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=GUARD_SECONDS) as answer:
        text: bytes = answer.read()
        return text.decode()


def test_figures_can_be_read() -> None:
    registry = new_registry()
    Counter("things", "Things.", registry=registry).inc(3)
    with serving_metrics(registry, 0) as port:
        text = read(port)
    assert "things_total 3.0" in text
    assert "process_resident_memory_bytes" in text


def test_strangers_are_refused() -> None:
    with serving_metrics(new_registry(), 0, "secret") as port:
        assert "process_resident_memory_bytes" in read(port, "secret")
        for wrong in (None, "", "secret2"):
            with pytest.raises(urllib.error.HTTPError, match="401") as refused:
                read(port, wrong)
            refused.value.close()


def test_without_a_token_only_names_of_loopback_are_answered() -> None:
    with serving_metrics(new_registry(), 0) as port:
        for host, status in (("evil.example", 421), (f"localhost:{port}", 200), ("[::1]", 200)):
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/metrics", headers={"Host": host}
            )
            try:
                with urllib.request.urlopen(request, timeout=GUARD_SECONDS) as answer:
                    found = answer.status
            except urllib.error.HTTPError as refused:
                found = refused.code
                refused.close()
            assert found == status, host


def test_a_port_that_is_taken_is_named() -> None:
    with (
        serving_metrics(new_registry(), 0) as port,
        pytest.raises(UsageError, match=f"port {port} for metrics"),
        serving_metrics(new_registry(), port),
    ):
        pass


def test_no_port_no_endpoint() -> None:
    with serving_metrics(new_registry(), None) as port:
        assert port is None


def test_who_holds_connections_gets_no_thread_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_CONNECTIONS", 3)
    monkeypatch.setattr(metrics, "_CONNECTION_SECONDS", 1.0)
    with serving_metrics(new_registry(), 0) as port, ExitStack() as stack:
        held = [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", port or 0), timeout=GUARD_SECONDS)
            )
            for _ in range(4)
        ]
        assert held[3].recv(1) == b"", "there was no room for it"
        for one in held[:3]:
            one.sendall(b"GET /metr")
        assert [said(one) for one in held[:3]] == [b""] * 3, "their time was over"
        until(lambda: _is_served(port))


def said(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except ConnectionResetError:  # it was closed before what we sent had arrived
        return b""


def _is_served(port: int | None) -> bool:
    try:
        return "process_resident_memory_bytes" in read(port)
    except OSError:
        return False


@pytest.mark.parametrize(("path", "ready", "alive", "status"), [
    ("/healthz", False, True, 200), ("/readyz", True, True, 200), ("/readyz", False, True, 503),
    ("/healthz", True, False, 503), ("/readyz", True, False, 503),
])  # fmt: skip
def test_probes_need_no_token(path: str, ready: bool, alive: bool, status: int) -> None:
    serving = serving_metrics(new_registry(), 0, "secret", lambda: ready, alive=lambda: alive)
    with serving as port:
        try:
            where = f"http://127.0.0.1:{port}{path}"
            with urllib.request.urlopen(where, timeout=GUARD_SECONDS) as answer:
                found = answer.status
        except urllib.error.HTTPError as refused:
            found = refused.code
            refused.close()
    assert found == status
