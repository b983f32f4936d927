"""Rows that a program appends, to a folder and to a cluster: each exactly once, never mixed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from tests.harness.cluster_loads import SMALL, cluster_load, shelf_of, stored_rows
from tests.harness.memory_cluster import Cluster, cluster
from tests.harness.shelves import sales_app, sales_loader, write_sales_app

import caudal
from caudal.client.load import ClusterLoad, rows_of
from caudal.client.submit import Watching
from caudal.datasets.offered_rows import offered_rows
from caudal.datasets.shelf import Shelf
from caudal.embedded.dataset_rows import arrow_rows, rows_source
from caudal.embedded.dataset_sources import Source
from caudal.errors import DataError, UsageError
from caudal.files.cleaning import Wanted
from caudal.files.pieces import FilePiece
from caudal.run_options import RunOptions
from caudal.store import MemoryStore

COLUMNS = ("id", "amount", "day")
NUMBERS = range(1, 40)


def rows(numbers: range = NUMBERS) -> list[dict[str, object]]:
    """Sales; every seventh is rejected."""
    return [
        {"id": n if n % 7 else f"x{n}", "amount": f"{n}.25", "day": "2024-01-02"} for n in numbers
    ]


def arrow(numbers: range = NUMBERS) -> pa.Table:
    texts = [[str(row[name]) for row in rows(numbers)] for name in COLUMNS]
    return pa.table(texts, names=COLUMNS)


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The application, as a folder."""
    return write_sales_app(tmp_path_factory.mktemp("apps") / "sales")


@pytest.mark.parametrize(
    ("kind", "given"),
    [("dictionaries", rows()), ("arrow", arrow()), ("polars", polars.from_arrow(arrow()))],
)
def test_the_rows_of_a_cluster_are_those_of_a_folder(
    kind: str, given: object, running: Cluster, folder: Path, tmp_path: Path
) -> None:
    remote = caudal.Client(running.gateway).dataset(kind)
    report = remote.append(folder, "sales", given)
    local = caudal.Dataset(tmp_path / "shelf")
    same = local.append(folder, "sales", given)
    assert (report.version, report.rows) == (same.version, same.rows) == (1, 34)
    assert report.rejects.counts() == same.rejects.counts()
    here = shelf_of(running.store, name=kind)
    for table in ("sales", "rejects"):
        assert stored_rows(here, table) == local.table(table).to_arrow().to_pylist()
    assert [one.kind for one in remote.versions()] == ["create", "load"]
    counted = remote.sql("SELECT count(*) AS n FROM sales", folder).rows()
    assert counted == [{"n": 34}]


def test_rows_with_a_key_are_appended_once(running: Cluster, folder: Path) -> None:
    shelf = caudal.Client(running.gateway).dataset("keyed")
    assert shelf.append(folder, "sales", rows(), key="november").version == 1
    again = shelf.append(folder, "sales", rows(), key="november")
    assert (again.version, again.newest) == (None, 1)
    (skipped,) = again.skipped
    assert skipped.told() == "appended rows november skipped: version 1 loaded it"
    assert shelf.append(folder, "sales", rows()).version == 2  # without a key: more of the same


def test_what_holds_no_rows_and_unknown_tables_are_refused(running: Cluster, folder: Path) -> None:
    shelf = caudal.Client(running.gateway).dataset("wrong")
    with pytest.raises(UsageError, match="sales has no table 'shop'; its tables are: sales, shops"):
        shelf.append(folder, "shop", rows())
    with pytest.raises(UsageError, match="append takes rows"):
        shelf.append(folder, "sales", 7)
    with pytest.raises(DataError, match="appended rows: no column 'day', which table sales needs"):
        shelf.append(folder, "sales", [{"id": 1, "amount": 2}])
    assert not shelf_of(running.store, name="wrong").exists()


def keyed(numbers: range) -> ClusterLoad:
    """An append in small batches."""
    found = offered_rows(sales_app(), "sales", rows(numbers), "k")
    return ClusterLoad(sales_app(), "resumed", [rows_of(found, COLUMNS, 200)], SMALL)


class Dying(Watching):
    """A client that is killed when everything was sent."""

    def ended(self, table: str) -> None:
        raise KeyboardInterrupt


def test_a_killed_program_appends_once_and_never_mixes_two_attempts(running: Cluster) -> None:
    running.working.clear()
    try:
        for numbers in (range(30), range(30), range(100, 130)):
            with pytest.raises(KeyboardInterrupt):
                cluster_load(running.gateway, keyed(numbers), watching=Dying())
    finally:
        running.working.set()
    reports = [cluster_load(running.gateway, keyed(one)) for one in (range(30), range(100, 130))]
    assert [one.newest for one in reports] == [1, 1]
    found = [row["id"] for row in stored_rows(shelf_of(running.store, name="resumed"), "sales")]
    wanted = [[n for n in range(*some) if n % 7] for some in ((30,), (100, 130))]
    assert found in wanted


def killed_behind(source: Source, pieces: int) -> Source:
    """The source of a process that is killed when it has read some pieces."""

    def cut(wanted: Wanted, batch_bytes: int) -> Iterator[FilePiece]:
        for number, piece in enumerate(source.cut(wanted, batch_bytes)):
            if number == pieces:
                raise KeyboardInterrupt
            yield piece

    return replace(source, cut=cut)


def test_a_killed_append_to_a_folder_is_not_finished_with_other_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("caudal.embedded.dataset_writing.BATCH_BYTES", 100)
    store, options = MemoryStore(), RunOptions(threads=1, batch_bytes=200)
    first = rows_source(sales_app(), "sales", rows(range(300)), "k")
    with sales_loader(store, options=options) as loader:
        with pytest.raises(KeyboardInterrupt):
            loader.load([killed_behind(first, 20)])
        assert any("loads/" in one for one in keys(store))  # batches wait for the same command
        loader.load([rows_source(sales_app(), "sales", rows(range(100, 130)), "k")])
        shelf = Shelf("", store, loader.contents())
    assert arrow_rows(shelf, "sales")["id"].to_pylist() == [n for n in range(100, 130) if n % 7]


def keys(store: MemoryStore) -> list[str]:
    return [entry.key for entry in store.list("").entries]
