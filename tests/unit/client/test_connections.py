"""Connections of a client: shared by its calls, closed when nobody uses them."""

import os
from pathlib import Path

import pytest
from tests.harness.memory_cluster import Cluster
from tests.unit.client.conftest import PARAMETERS

from caudal.client import pace
from caudal.client.client import Client
from caudal.client.connections import Connections, KeptConnections

ADDRESSES = ["http://127.0.0.1:9"]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ports of all connections that were opened."""
    ports: list[int] = []
    connect = pace._Backend.connect_tcp

    def counted(
        self: pace._Backend, host: str, port: int, *more: object, **named: object
    ) -> object:
        ports.append(port)
        return connect(self, host, port, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(pace._Backend, "connect_tcp", counted)
    return ports


def test_calls_one_after_the_other_use_one_connection(one: Cluster, opened: list[int]) -> None:
    with Client(one.gateway) as client:
        for _ in range(3):
            client.jobs()
    assert len(opened) == 1


def test_a_small_job_opens_few(one: Cluster, books: Path, opened: list[int]) -> None:
    with Client(one.gateway) as client:
        for _ in range(3):
            client.run("books", books, "q2", parameters=PARAMETERS)
    assert len(opened) <= 3  # one thread sends while another one follows


def test_a_client_that_was_closed_goes_on_with_new_ones(one: Cluster, opened: list[int]) -> None:
    with Client(one.gateway) as client:
        client.jobs()
    client.jobs()
    client.close()
    assert len(opened) == 2


def test_a_job_outlives_the_client_that_made_it(one: Cluster) -> None:
    with Client(one.gateway) as client:
        job = client.job("books", "q2")
    del client
    assert job.status().outcome is None
    job.cancel()
    job.close()


def test_who_is_closed_leaves_the_connections_of_others_open(one: Cluster) -> None:
    client = Client(one.gateway)
    with client.gateways() as first:
        first.quotas()
        with client.gateways() as second:
            second.quotas()
        first.quotas()
    client.close()


def test_a_forked_process_uses_none_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptConnections(lambda: Connections(ADDRESSES))
    of_parent = kept.get()
    assert kept.get() is of_parent
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert kept.get() is not of_parent
    of_parent.close()
    assert not of_parent.http.is_closed


def test_connections_that_were_closed_are_not_used_again() -> None:
    kept = KeptConnections(lambda: Connections(ADDRESSES))
    closed = kept.get()
    closed.close()
    assert closed.http.is_closed
    assert kept.get() is not closed
