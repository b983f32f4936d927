"""Where a session comes from: the server that is named, or the one of this process."""

import socket
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from caudal.errors import SparkFailedError, UsageError
from caudal.run_options import SparkOptions
from caudal.spark import starting

pytest.importorskip("pyspark.sql.connect.session", reason="caudal[spark] is not installed")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


def started(remote: str) -> None:
    with starting.started_session(SparkOptions(remote=remote)):
        pass


def test_a_server_that_nobody_started_is_noticed_before_grpc_waits() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # it does not listen
        place = f"127.0.0.1:{closed.getsockname()[1]}"
        told = rf"^cannot reach Spark at {place} \(Connection refused\): start its Connect server"
        with pytest.raises(SparkFailedError, match=told):
            started(f"sc://{place}/;user_id=me")


@pytest.mark.parametrize(
    ("remote", "expected"),
    [("sc://host", ("host", 15002)), ("sc://host:7/;token=a;use_ssl=true", ("host", 7)),
     ("sc://[::1]:7", ("::1", 7))],
)  # fmt: skip
def test_the_address_of_a_server_is_that_of_its_url(
    remote: str, expected: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def connect(address: tuple[str, int], _: float) -> Any:
        tried.append(address)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(SparkFailedError, match=r"\(timed out\)"):
        started(remote)
    assert tried == [expected]


@pytest.mark.parametrize(
    ("given", "active", "expected"),
    [
        (SparkOptions(), None, "environment"),
        (SparkOptions(remote="sc://option"), None, "option"),
        (SparkOptions(), object(), ""),
        (SparkOptions(master="local[2]"), None, ""),
    ],
    ids=["nothing else is named", "an option", "a session of the process", "a master"],
)
def test_the_environment_may_name_the_server(
    given: SparkOptions, active: object, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def connect(address: tuple[str, int], _: float) -> Any:
        tried.append(address[0])
        raise TimeoutError("timed out")

    monkeypatch.setenv("SPARK_REMOTE", "sc://environment")
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", active)
    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(starting, "_OWN", SimpleNamespace(joined=nullcontext))
    refusal = "correct --remote" if expected == "option" else "correct SPARK_REMOTE"
    refused = pytest.raises(SparkFailedError, match=refusal) if expected else nullcontext()
    with refused, starting.started_session(given):
        pass
    assert tried == ([expected] if expected else [])


@pytest.mark.parametrize("remote", ["sc://", "sc://host:a", "sc://host:99999", "host:15002"])
def test_an_address_that_is_none_is_refused(remote: str) -> None:
    with pytest.raises(UsageError, match="write it as sc://host:15002"):
        started(remote)


@pytest.mark.parametrize("remote", ["sc://h:1;token=SECRET", "me:SECRET@h:1", "sc:/h/?t=SECRET"])
def test_a_refused_address_is_told_without_its_token(remote: str) -> None:
    with pytest.raises(UsageError) as refusal:
        started(remote)
    assert "SECRET" not in str(refusal.value)


def test_a_session_of_caudal_ends_with_its_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of several threads share it."""
    live: list[object] = []

    class Own:
        def stop(self) -> None:
            live.remove(self)

    def classic(_: object) -> object:
        live.append(Own())
        return live[0]

    monkeypatch.setattr(starting, "_active", lambda _: live[0] if live else None)
    monkeypatch.setattr(starting, "_classic", classic)
    own = starting._OwnSession()
    first, second = own.joined(None), own.joined(None)
    session = first.__enter__()
    assert second.__enter__() is session
    first.__exit__(None, None, None)
    assert live == [session]
    second.__exit__(None, None, None)
    assert live == []
