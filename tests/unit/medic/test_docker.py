"""Members as containers: what a start reports, whom it leaves alone, and their logs."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from tests.harness.cluster_folder import laid_out
from tests.harness.told_engine import ToldEngine, told_engine

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member
from caudal.errors import EngineError
from caudal.medic import docker
from caudal.medic.containers import Condition
from caudal.medic.docker import DockerLauncher
from caudal.medic.engine import DockerEngine
from caudal.process.heart import HeartFile
from caudal.process.records import read_record, write_record, written_at

CONTAINER = "caudal-worker-1"


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return laid_out(tmp_path, medics=1, workers=1)


@pytest.fixture
def worker(cluster: Cluster) -> Member:
    return next(one for one in cluster.here if one.name == "worker-1")


@pytest.fixture
def told(tmp_path: Path) -> Iterator[ToldEngine]:
    with told_engine(tmp_path, CONTAINER) as found:
        yield found


@pytest.fixture
def launcher(cluster: Cluster, told: ToldEngine) -> DockerLauncher:
    return DockerLauncher(cluster, told.engine)


def left_for_it(cluster: Cluster) -> int | None:
    """The incarnation that the container's process would take from its launcher."""
    path = cluster.run_folder / "worker-1.next"
    if not path.exists():
        return None
    return msgspec.json.decode(path.read_bytes(), type=HeartFile).incarnation


def test_a_start_is_recorded_after_the_container_runs(
    cluster: Cluster, worker: Member, told: ToldEngine, launcher: DockerLauncher
) -> None:
    write_record(cluster.run_folder, "worker-1", 3, 0)
    seen = []
    told.before_start = lambda: seen.append(
        (left_for_it(cluster), read_record(cluster.run_folder, "worker-1"))
    )
    before = read_record(cluster.run_folder, "worker-1")
    assert launcher.start(worker, 3) == 4
    assert seen == [(4, before)]
    record = read_record(cluster.run_folder, "worker-1")
    assert record is not None
    assert record.incarnation == 4


STARTS: list[Callable[[DockerLauncher, Member], int | None]] = [
    lambda launcher, member: launcher.start(member, 3),
    lambda launcher, member: launcher.replace(member, 1),
]


@pytest.mark.parametrize("start", STARTS, ids=["start", "replace"])
def test_a_start_that_the_engine_refuses_reports_no_incarnation(
    cluster: Cluster,
    worker: Member,
    told: ToldEngine,
    launcher: DockerLauncher,
    start: Callable[[DockerLauncher, Member], int | None],
) -> None:
    write_record(cluster.run_folder, "worker-1", 3, 0)
    before = read_record(cluster.run_folder, "worker-1")
    told.refuses_to_start = True
    with pytest.raises(EngineError, match=r"refused \(500\): OCI runtime.*no space left"):
        start(launcher, worker)
    assert "start" in told.ordered
    assert read_record(cluster.run_folder, "worker-1") == before
    assert left_for_it(cluster) is None
    told.refuses_to_start = False
    assert start(launcher, worker) == 4, "the number was not used up"


def test_a_second_start_meets_the_first_one_at_the_lock(
    cluster: Cluster, worker: Member, told: ToldEngine, launcher: DockerLauncher
) -> None:
    """Two medics execute one order, each with a launcher of its own."""
    begun, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        begun.set()
        go_on.wait()

    told.before_start = slowly
    other = DockerLauncher(cluster, told.engine)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(launcher.start, worker, 0)
        try:
            begun.wait()
            assert other.start(worker, 0) is None
            assert other.replace(worker, 1) is None
        finally:
            go_on.set()
        assert first.result() == 1
    assert other.start(worker, 0) is None, "a newer one than the dead one runs by now"
    assert told.ordered == ["start"]


def test_one_that_hangs_is_killed_before_it_is_started_anew(
    cluster: Cluster, worker: Member, told: ToldEngine, launcher: DockerLauncher
) -> None:
    write_record(cluster.run_folder, "worker-1", 3, 0)
    told.status = "running"
    assert launcher.start(worker, 3) == 4
    assert told.ordered == ["unpause", "kill", "wait", "start"]


def test_records_ask_the_engine_nothing(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A medic looks many times a second: what a thread has heard of the engine must do."""
    known: list[dict[str, Condition] | None] = [None]

    class Heard:
        def __init__(self, *_: object) -> None:
            """It follows nothing."""

        def now(self) -> dict[str, Condition] | None:
            return known[0]

    monkeypatch.setattr(docker, "ContainerWatch", Heard)
    nobody = DockerLauncher(cluster, DockerEngine(str(tmp_path / "none.sock")))
    write_record(cluster.run_folder, "worker-1", 3, 0)
    assert nobody.records(["worker-1"], ["worker-1"]) == [], "nothing was heard yet"
    later = written_at(cluster.run_folder, "worker-1") + 1
    found = []
    for status in ("running", "paused", "exited"):
        known[0] = {CONTAINER: Condition(status, later)}
        (record,) = nobody.records(["worker-1", "worker-2"], [])
        found.append((record.incarnation, record.stopped, record.gone))
    assert found == [(3, False, False), (3, True, False), (3, False, True)]


def test_a_log_is_followed_beyond_the_end_of_its_container(
    told: ToldEngine, launcher: DockerLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "_LOOK_SECONDS", 0.0)
    told.logs = [b"one\ntwo\n", b"", b"three, after the restart\n"]
    lines = launcher.log_lines("worker-1", 2, follow=True)
    assert list(islice(lines, 3)) == ["one", "two", "three, after the restart"]
    first, *later = told.log_queries
    assert (first["tail"], first["follow"]) == (["2"], ["1"])
    assert all("since" in one and "tail" not in one for one in later), "no line comes twice"
    with pytest.raises(EngineError, match=r"refused \(404\)"):  # it was removed
        next(lines)


def test_a_log_that_is_not_followed_ends(told: ToldEngine, launcher: DockerLauncher) -> None:
    told.logs = [b"one\ntwo\n", b"never asked for\n"]
    assert list(launcher.log_lines("worker-1", 5)) == ["one", "two"]
    assert told.log_queries[0]["follow"] == ["0"]
