"""Containers number themselves: `caudal init` and the heart file that `caudal member` takes."""

import stat
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.cluster.folder import Cluster
from caudal.process.healthy import is_healthy
from caudal.process.heart import HeartFile
from caudal.process.metrics import serving_metrics
from caudal.process.records import write_record
from caudal.worker.figures import WorkerMetrics

TOML = (Path(__file__).parents[3] / "deploy" / "cluster.toml").read_text()


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    (tmp_path / "cluster.toml").write_text(TOML)
    found = Cluster.open(tmp_path)
    found.lay_out()
    return found


def incarnation(path: Path) -> int:
    return msgspec.json.decode(path.read_bytes(), type=HeartFile).incarnation


def test_a_container_takes_what_a_medic_left_and_else_the_next_number(cluster: Cluster) -> None:
    worker = next(one for one in cluster.here if one.name == "worker-1")
    assert incarnation(cluster.take_heart(worker)) == 1
    write_record(cluster.run_folder, "worker-1", 1, 0)
    assert incarnation(cluster.take_heart(worker)) == 2
    cluster.write_heart(worker, 5, "next")
    assert incarnation(cluster.take_heart(worker)) == 5
    assert not (cluster.run_folder / "worker-1.next").exists()


def test_each_member_tells_where_its_health_is_asked(cluster: Cluster) -> None:
    found = {one.name: cluster.health_of(one) for one in cluster.here}
    assert found["gateway-2"] == "http://127.0.0.1:8422/healthz"
    assert found["worker-2"] == "http://127.0.0.1:8551/readyz"
    assert found["medic-3"] == "tcp://127.0.0.1:8472"


def test_nobody_who_listens_is_not_healthy() -> None:
    assert not is_healthy("tcp://127.0.0.1:1")
    assert not is_healthy("http://127.0.0.1:1/healthz")


def test_a_worker_is_healthy_for_the_engine_once_it_takes_tasks(cluster: Cluster) -> None:
    """Not while it waits for store or broker, although it lives."""
    worker = next(one for one in cluster.here if one.name == "worker-1")
    path = urlsplit(cluster.health_of(worker)).path
    figures = WorkerMetrics()
    serving = serving_metrics(figures.registry, 0, None, lambda: figures.ready)
    with serving as port:
        found = [is_healthy(f"http://127.0.0.1:{port}{path}")]
        figures.ready = True
        found.append(is_healthy(f"http://127.0.0.1:{port}{path}"))
    assert found == [False, True]


def test_init_lays_out_once_and_keeps_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, folder = tmp_path / "given.toml", tmp_path / "cluster"
    source.write_text(TOML)
    command = ["init", "--from", str(source), "--dir", str(folder)]
    assert main(command) == ExitStatus.OK
    secret = (folder / "secret").read_bytes()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    source.write_text(TOML.replace("workers = 2", "workers = 3"))
    assert main(command) == ExitStatus.OK
    assert "it stays as it is" in capsys.readouterr().err
    assert Cluster.open(folder).settings.hosts["local"].workers == 2
    assert (folder / "secret").read_bytes() == secret


def test_a_member_that_the_file_does_not_name_has_nothing_to_run(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["member", "worker-9", "--dir", str(cluster.folder)]) == ExitStatus.OK
    assert "nothing to run" in capsys.readouterr().err
