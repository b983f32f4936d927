"""Whoever has no token takes nothing from monitoring, and one stranger nothing from another."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NoReturn

import httpx
import pytest
from starlette.testclient import TestClient
from tests.harness.gateway_place import Place, code_of
from tests.harness.gateway_server import running
from tests.harness.hand_clock import HandClock
from tests.harness.waiting import GUARD_SECONDS

from caudal.broker.port import BrokerError
from caudal.gateway.application import make_application
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.rates import neighbours

PROBES = ("/healthz", "/readyz")


def from_address(place: Place, address: str) -> TestClient:
    return TestClient(make_application(place.service), client=(address, 50_000))


@pytest.fixture
def slow_place() -> Iterator[Place]:
    """One request a stranger, and then none for a long time."""
    limits = GatewayLimits(rate_per_second=0.001, rate_burst=1)
    with Place(limits=limits, clock=HandClock()) as made:
        yield made


@pytest.mark.parametrize("path", PROBES)
def test_probes_are_answered_whatever_strangers_ask(slow_place: Place, path: str) -> None:
    client = from_address(slow_place, "10.0.0.1")
    assert [client.get("/").status_code for _ in range(3)] == [200, 429, 429]
    assert [client.get(path).status_code for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("path", PROBES)
def test_probes_need_no_place(path: str) -> None:
    with Place(limits=GatewayLimits(watchers=0)) as place:
        client = place.client(token=None)
        assert code_of(client.get("/")) == (429, "busy")
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/", "/metrics"])
def test_one_address_takes_nothing_from_another(slow_place: Place, path: str) -> None:
    hostile, other = (from_address(slow_place, f"10.0.0.{n}") for n in (1, 2))
    assert [hostile.get("/").status_code for _ in range(2)] == [200, 429]
    assert other.get(path).status_code == 200
    assert code_of(other.get(path)) == (429, "rate_limited")


def test_neighbours_in_ipv6_are_one(slow_place: Place) -> None:
    first, next_door, elsewhere = (
        from_address(slow_place, one) for one in ("fd00::1", "fd00::ffff:2", "fd00:0:0:1::1")
    )
    assert first.get("/").status_code == 200
    assert next_door.get("/").status_code == 429
    assert elsewhere.get("/").status_code == 200


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fd00::1", "fd00::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_names_of_neighbours(address: str, named: str) -> None:
    assert neighbours(address) == named


@contextmanager
def hanging_broker(place: Place) -> Iterator[list[threading.Event]]:
    """A broker that answers nothing until the block ends; yields the calls that wait."""
    calls: list[threading.Event] = []
    over, answer = threading.Event(), place.broker.depths

    def hang() -> object:
        calls.append(over)
        over.wait()
        return answer()

    place.broker.depths = hang  # type: ignore[method-assign, assignment]
    try:
        yield calls
    finally:
        over.set()


@pytest.mark.parametrize("path", ["/readyz", "/metrics"])
def test_all_who_ask_while_the_broker_hangs_share_one_call(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("caudal.gateway.shared_answers.PATIENCE_SECONDS", 0.5)
    limits = GatewayLimits(watchers=99)
    with Place(limits=limits) as place, running(place) as server, hanging_broker(place) as calls:

        def ask(_: int) -> int:
            return httpx.get(server.url + path, timeout=GUARD_SECONDS).status_code

        with ThreadPoolExecutor(32) as pool:
            statuses = list(pool.map(ask, range(32)))
        assert statuses == [503 if path == "/readyz" else 200] * 32
        assert ask(0) == statuses[0], "at once: the call before it still hangs"
        assert len(calls) == 1
        assert httpx.get(f"{server.url}/healthz", timeout=GUARD_SECONDS).status_code == 200
        assert httpx.get(server.url, timeout=GUARD_SECONDS).status_code == 200


def away() -> NoReturn:
    raise BrokerError("away")


def test_readiness_is_known_for_a_second() -> None:
    clock = HandClock()
    with Place(clock=clock) as place:
        client = place.client(token=None)
        assert client.get("/readyz").status_code == 200
        place.broker.depths = away  # type: ignore[method-assign]
        assert client.get("/readyz").status_code == 200
        clock.time += 1.0
        assert code_of(client.get("/readyz")) == (503, "unavailable")
        del place.broker.depths
        assert client.get("/readyz").status_code == 503
        clock.time += 1.0
        assert client.get("/readyz").status_code == 200


def test_a_stopping_gateway_says_so_at_once() -> None:
    with Place(clock=HandClock()) as place:
        client = place.client(token=None)
        assert client.get("/readyz").status_code == 200
        place.stopping = True
        assert code_of(client.get("/readyz")) == (503, "unavailable")
