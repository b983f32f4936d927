"""Datasets of a real cluster, asked by commands. Answers are those of `caudal run`, in bytes."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from caudal.application import find_application
from caudal.cluster.folder import Cluster
from caudal.datasets.cluster_place import ClusterDataset, locate
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_sources import file_sources
from caudal.files.sources import Sources
from caudal.process.records import read_record, send_signal
from caudal.store import open_store
from caudal.store.port import entries
from tests.acceptance.cluster import CAUDAL, RealCluster, running
from tests.acceptance.streaming import Source
from tests.harness.waiting import until

OWNER = "ana"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A cluster with tokens of three owners."""
    folder = tmp_path_factory.mktemp("cluster")
    made = RealCluster(folder, 0)
    with running(folder, "--broker", "embedded", "--workers", "2") as found:
        made.caudal("down")
        settings = folder / "cluster.toml"
        settings.write_text(settings.read_text().replace('tokens = ""', 'tokens = "tokens"'))
        for name in (OWNER, "ben", "eve"):
            (folder / f"{name}.token").write_text(found.caudal("token", "new", name).stdout)
        found.caudal("up")
        yield found


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source.of("books", tmp_path_factory.mktemp("books"), 0.002)


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source.of("movies", tmp_path_factory.mktemp("movies"), 0.002)


def dataset(real: RealCluster, name: str) -> ClusterDataset:
    return locate(open_store(str(real.folder / "store")), OWNER, name)


def load(real: RealCluster, source: Source, name: str, **files: str) -> None:
    """Load files into a dataset of the cluster; without `files`, all of the application."""
    app = find_application(source.app)
    tables = [one for one in app.tables if not files or one.name in files]
    given = {table: [path] for table, path in files.items()}
    with open_loader(app, name, dataset(real, name).below) as loader:
        loader.load(file_sources(Sources(source.data, given), tables))


def question(real: RealCluster, app: str, name: str, *more: str, who: str = OWNER) -> list[str]:
    token = ["--token-file", str(real.folder / f"{who}.token")]
    way = ["--gateway", real.gateways, "--dataset", name, "--format", "json"]
    return [*CAUDAL, "submit", app, *way, *token, *more]


def answer(command: list[str]) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def maps(real: RealCluster) -> int:
    """How many map tasks the workers have computed so far, by their logs."""
    found = 0
    for log in (real.folder / "logs").glob("worker-*.log"):
        lines = (json.loads(one) for one in log.read_text().splitlines() if one.startswith("{"))
        found += sum(one.get("task") == "map" and one["event"] == "task done" for one in lines)
    return found


@pytest.mark.long
def test_answers_are_those_over_the_files_and_come_again_without_maps(
    real: RealCluster, books: Source, movies: Source
) -> None:
    for source in (books, movies):
        load(real, source, source.app)
        first = answer(question(real, source.app, source.app))
        assert first == source.answer
        before = maps(real)
        assert before
        assert answer(question(real, source.app, source.app)) == source.answer
        assert maps(real) == before


def test_after_an_append_only_new_files_are_mapped(
    real: RealCluster, books: Source, tmp_path: Path
) -> None:
    load(real, books, "growing")
    assert answer(question(real, "books", "growing")) == books.answer
    before, files = maps(real), len(dataset(real, "growing").contents().tables["reviews"])
    whole = (books.data / "Books_rating.csv").read_bytes().splitlines(keepends=True)
    more = tmp_path / "more.csv"
    more.write_bytes(b"".join(whole[:2]))
    load(real, books, "growing", reviews=str(more))
    assert len(dataset(real, "growing").contents().tables["reviews"]) == files + 1
    joined = tmp_path / "all"
    joined.mkdir()
    (joined / "Books_rating.csv").write_bytes(b"".join([*whole, whole[1]]))
    (joined / "books_data.csv").write_bytes((books.data / "books_data.csv").read_bytes())
    wanted = answer([*CAUDAL, "run", "books", "--data", str(joined), "--format", "json"])
    assert answer(question(real, "books", "growing")) == wanted
    assert maps(real) == before + 1
    assert answer(question(real, "books", "growing", "--as-of", "1")) == books.answer


def test_readers_and_others(real: RealCluster, books: Source) -> None:
    load(real, books, "shared")
    dataset(real, "shared").share("ben")
    assert answer(question(real, "books", "ana/shared", who="ben")) == books.answer
    for name in ("ana/shared", "shared"):
        command = question(real, "books", name, who="eve")
        refused = subprocess.run(command, capture_output=True, check=False)
        assert refused.returncode == 2
        assert f"there is no dataset {name} that you may read" in refused.stderr.decode()


def test_processes_that_are_killed_while_a_question_is_computed(
    real: RealCluster, books: Source
) -> None:
    load(real, books, "killed")
    command = question(real, "books", "killed", "--patience", "600")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        root = dataset(real, "killed")
        until(lambda: any(entries(root.store, f"{root.root}mapped/")))
        for name in ("worker-1", "gateway-1"):
            kill(real, name)
        out, words = client.communicate()
        assert client.returncode == 0, words.decode()
        assert out == books.answer


def kill(real: RealCluster, name: str) -> None:
    """SIGKILL to a process of the cluster; its medic starts it again."""
    record = read_record(Cluster.open(real.folder).run_folder, name)
    assert record is not None
    send_signal(record, signal.SIGKILL)
