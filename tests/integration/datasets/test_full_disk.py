"""Loads onto a small disk that is full: the user is told, nothing is lost, and it goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.cluster_loads import cluster_load, cluster_order, shelf_of, stored_rows
from tests.harness.memory_cluster import Cluster
from tests.harness.shelves import write_sales, write_sales_app, write_shops
from tests.harness.small_disk import fill, small_disk
from tests.harness.waiting import until

from caudal.application import find_application
from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.client.submit import Watching
from caudal.errors import StoreFullError
from caudal.store import DirectoryStore

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of two megabytes, beside files and their application in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_sales_app(tmp_path / "sales")
    write_shops(tmp_path)
    write_sales(tmp_path, "sales.csv", range(9))
    write_sales(tmp_path, "more.csv", range(20, 29))
    with small_disk(tmp_path / "disk") as made:
        yield made


def test_a_folder_on_a_full_disk(disk: Path, capsys: Capture) -> None:
    ballast = fill(disk)
    place = str(disk / "shelf")
    load = ["load", "./sales", "--data", ".", "--to", place]
    for _ in range(2):
        assert main(load) == ExitStatus.STORE
        said = capsys.readouterr().err
        assert "the disk is full; free some space\n" in said
        assert f"{place} holds this load whole or not at all: run the same command to" in said
    ballast.unlink()
    assert main(load) == 0
    assert capsys.readouterr().out.startswith(f"{place}: version 1: 11 rows")
    ballast = fill(disk)
    assert main(["load", "./sales", "--file", "sales=more.csv", "--to", place]) != 0
    capsys.readouterr()
    count = ["sql", "./sales", "SELECT count(*) AS n FROM sales", "--format", "csv"]
    assert main([*count, "--from", place]) == 0  # what was loaded can be asked
    assert capsys.readouterr().out == "n\n9\n"
    ballast.unlink()
    assert main(["load", "./sales", "--file", "sales=more.csv", "--to", place]) == 0
    assert "version 2: 9 rows" in capsys.readouterr().out


class CountingStore(DirectoryStore):
    """A directory that counts how often its disk was full."""

    refused = 0

    def create(self, key: str, data: Any, *, lasting: bool = True) -> None:
        try:
            super().create(key, data, lasting=lasting)
        except StoreFullError:
            self.refused += 1
            raise


def test_a_cluster_whose_store_is_full(disk: Path, capsys: Capture) -> None:
    store = CountingStore(disk / "store", fsync=False)
    running = Cluster(store=store)
    running.start(gateways=2)
    try:
        way = ["--gateway", running.gateway, "--dataset", "shelf"]
        ballast = fill(disk)
        load = ["load", "./sales", "--data", ".", *way]
        assert main([*load, "--patience", "0.3"]) == ExitStatus.UNREACHABLE
        said = capsys.readouterr().err
        assert "no gateway could serve this request for 0.3 seconds (tried " in said
        assert ": answered 503: the store of the cluster is full; free some space); " in said
        assert "run the same command" in said
        ballast.unlink()
        assert main(load) == 0
        assert "version 1: 11 rows" in capsys.readouterr().out
        finishes_by_itself(running, store, disk)
    finally:
        running.stop()


class Leaving(Watching):
    """A client that leaves when everything was sent."""

    def ended(self, table: str) -> None:
        raise KeyboardInterrupt


def finishes_by_itself(running: Cluster, store: CountingStore, disk: Path) -> None:
    """The disk becomes full while workers compute, and the client is gone: the load is not lost."""
    running.working.clear()
    order = cluster_order(Path(), app=find_application("./sales"), sales=["more.csv"])
    with pytest.raises(KeyboardInterrupt):
        cluster_load(running.gateway, order, watching=Leaving())
    ballast, before = fill(disk), store.refused
    running.working.set()
    until(lambda: store.refused > before)
    place = shelf_of(store)
    assert place.contents().number == 1
    ballast.unlink()
    until(lambda: place.contents().number == 2)
    assert len(stored_rows(place, "sales")) == 18
    assert cluster_load(running.gateway, order).version is None
