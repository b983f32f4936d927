"""A gateway without room: the next one is asked in the same round, and who waits is told."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.harness.lying_gateway import Hostile, Spoilt, fair, hostile
from tests.harness.memory_cluster import Cluster
from tests.unit.client.conftest import BATCH_BYTES, PARAMETERS, check

from caudal.client.client import Client
from caudal.client.http import HttpGateways
from caudal.errors import JobError
from caudal.jobs import retry
from caudal.results.answers import Answers


def refusal(code: str, quota: str | None = None, seconds: str = "0") -> Spoilt:
    error = {"code": code, "message": f"no room: {code} {quota}", "quota": quota}
    return Spoilt(msgspec.json.encode({"error": error}), 429, headers={"Retry-After": seconds})


BUSY = [
    ("busy", None),
    ("over_quota", "requests"),
    ("over_quota", "uploads"),
    ("over_quota", "streams"),
]
EVERYWHERE = [("rate_limited", None), ("over_quota", "jobs"), ("over_quota", "stored")]


@pytest.fixture(scope="module")
def before(one: Cluster) -> Iterator[Hostile]:
    """A gateway before the real one."""
    with hostile(one.gateway) as found:
        yield found


@pytest.fixture
def full(before: Hostile) -> Iterator[Hostile]:
    before.asked.clear()
    yield before
    before.spoil = fair


@pytest.mark.parametrize(("code", "quota"), BUSY)
def test_the_next_gateway_is_asked_at_once(
    code: str, quota: str | None, full: Hostile, one: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object, *waiting: object) -> None:
        raise AssertionError("nobody had to wait")

    monkeypatch.setattr(retry.Retry, "pause", refuse)
    full.spoil = lambda path, body: refusal(code, quota, "30")
    with HttpGateways([full.address, *one.addresses]) as gateways:
        assert list(gateways.jobs()) == list(Client(one.gateway).jobs())
        assert gateways.in_turn()[0] == one.gateway, "the one with room is asked first from now on"
    assert len(full.asked) == 1


@pytest.mark.parametrize(("code", "quota"), EVERYWHERE)
def test_what_is_the_same_everywhere_is_not_asked_elsewhere(
    code: str, quota: str | None, full: Hostile, one: Cluster
) -> None:
    refused = 2

    def spoil(path: str, body: bytes) -> Spoilt | None:
        return refusal(code, quota) if len(full.asked) <= refused else None

    full.spoil = spoil
    with HttpGateways([full.address, "http://127.0.0.1:9"]) as gateways:
        list(gateways.jobs())
        assert gateways.in_turn()[0] == full.address
    assert len(full.asked) == refused + 1
    full.spoil = lambda path, body: refusal(code, "kept")
    with (
        HttpGateways([full.address], patience_seconds=0.0) as gateways,
        pytest.raises(JobError, match="no room"),
    ):
        list(gateways.jobs())


def test_if_none_has_room_the_longest_wait_is_kept_and_told(
    full: Hostile, one: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that is lost meanwhile ends no patience: the other one has answered."""
    waits = list[float]()
    monkeypatch.setattr(retry.Retry, "pause", lambda self, rounds, least=0.0: waits.append(least))
    full.spoil = lambda path, body: (
        refusal("busy", seconds="77" if len(full.asked) == 1 else "4") if len(waits) < 3 else None
    )
    lines = list[str]()
    addresses = [full.address, "http://127.0.0.1:9"]
    with HttpGateways(addresses, patience_seconds=0.0, tell=lines.append) as gateways:
        list(gateways.jobs())
    assert waits == [30.0, 4.0, 4.0]
    (line,) = lines
    assert line.startswith(
        f"no gateway has room for this request, trying again: {full.address}: no"
    )


def test_the_user_of_a_client_is_told(
    full: Hostile, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "TELL_SECONDS", 0.0)
    full.spoil = lambda path, body: refusal("busy") if len(full.asked) < 3 else None
    with caplog.at_level(logging.WARNING, "caudal.client.client"):
        Client(full.address).jobs()
    assert [one.name for one in caplog.records] == ["caudal.client.client"]
    assert "has room for this request" in caplog.text


def test_a_whole_job_beside_a_gateway_that_is_always_full(
    full: Hostile, one: Cluster, books: Path, expected: Answers
) -> None:
    how: dict[str, Any] = {"parameters": PARAMETERS, "batch_bytes": BATCH_BYTES}
    refuse: Callable[[str, bytes], Spoilt | None] = lambda path, body: refusal("busy")  # noqa: E731
    full.spoil = refuse
    client = Client(f"{full.address},{one.gateway}")
    for _ in range(20):  # a job begins at the address that follows from its id
        check(client.run("books", books, **how), expected)
        if full.asked:
            break
    assert full.asked
