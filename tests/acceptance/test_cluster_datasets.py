"""Loads into a dataset of a real cluster: killed clients and workers, and other readers."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pytest

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import MemberKind
from caudal.datasets.cluster_place import ClusterDataset, locate
from caudal.datasets.shelf import Shelf
from caudal.embedded.dataset_rows import arrow_rows
from caudal.formats.tokens import NOBODY
from caudal.generate import generate
from caudal.process.records import read_record, send_signal
from caudal.store import DirectoryStore
from tests.acceptance.cluster import CAUDAL, RealCluster, running
from tests.harness.shelves import load_app
from tests.harness.waiting import until


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with running(tmp_path_factory.mktemp("cluster"), "--broker", "embedded") as found:
        yield found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    generate("movies", scale=0.002, seed=5, out=folder)
    return folder


def command(real: RealCluster, name: str, *more: str) -> list[str]:
    where = ["--gateway", real.gateways, "--dataset", name, "--batch-size", "16KiB"]
    return [*CAUDAL, "load", "movies", *where, *more]


def done(words: list[str]) -> str:
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def place(real: RealCluster, name: str) -> ClusterDataset:
    return locate(DirectoryStore(store_folder(real), fsync=False), NOBODY, name)


def store_folder(real: RealCluster) -> Path:
    return Path(Cluster.open(real.folder).store)


def require_equal(real: RealCluster, name: str, whole: Shelf) -> None:
    """Compare every table with an embedded load, as Caudal and as Delta Lake read it."""
    here = place(real, name)
    shelf = Shelf(name, here.below, here.contents())
    root = store_folder(real) / here.root
    for table in whole.contents.tables:
        rows = arrow_rows(whole, table)
        assert arrow_rows(shelf, table).equals(rows), table
        other = deltalake.DeltaTable(str(root / "tables" / table))
        assert other.version() == shelf.contents.number
        assert other.to_pyarrow_table().num_rows == rows.num_rows


def test_a_load_an_append_and_the_same_again(real: RealCluster, data: Path, tmp_path: Path) -> None:
    lines = (data / "ratings.csv").read_bytes().splitlines(keepends=True)
    more = tmp_path / "more.csv"
    more.write_bytes(lines[0] + b"".join(lines[-200:]))
    assert "version 1:" in done(command(real, "grow", "--data", str(data)))
    assert "version 2: 200 rows" in done(command(real, "grow", "--file", f"ratings={more}"))
    assert "nothing new" in done(command(real, "grow", "--data", str(data)))
    listed = done([*CAUDAL, "datasets", "--gateway", real.gateways])
    assert "grow" in listed
    assert "movies" in listed
    assert "load" in done([*CAUDAL, "versions", "grow", "--gateway", real.gateways])
    assert "files became" in done([*CAUDAL, "compact", "grow", "--gateway", real.gateways])
    assert "nothing to delete" in done([*CAUDAL, "vacuum", "grow", "--gateway", real.gateways])
    change = [*CAUDAL, "datasets", "--gateway", real.gateways]
    assert "grow is read by: ben" in done([*change, "share", "grow", "--reader", "ben"])
    assert "by: nobody else" in done([*change, "unshare", "grow", "--reader", "ben"])
    assert "grow is deleted" in done([*change, "delete", "grow"])
    assert "version 1:" in done(command(real, "grow", "--data", str(data)))


def test_client_and_worker_killed_with_9(real: RealCluster, data: Path, tmp_path: Path) -> None:
    words = command(real, "killed", "--data", str(data))
    here = place(real, "killed")
    files = store_folder(real) / here.root / "tables" / "ratings"
    victim = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: any(files.glob("*/*.parquet")))
    kill_workers(real)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    again = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    until(lambda: again.poll() is not None or len(list(files.glob("*/*.parquet"))) > 2)
    kill_workers(real)
    told, _ = again.communicate()
    assert again.returncode == 0
    assert "version 1" in told
    require_equal(real, "killed", load_app("movies", data, tmp_path / "whole"))
    assert here.contents().number == 1


def kill_workers(real: RealCluster) -> None:
    """Kill all workers; the medics start new ones."""
    cluster = Cluster.open(real.folder)
    for member in cluster.here:
        record = read_record(cluster.run_folder, member.name)
        if member.kind is MemberKind.WORKER and record is not None:
            send_signal(record, signal.SIGKILL)
