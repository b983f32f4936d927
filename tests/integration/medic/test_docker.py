"""Containers as members, against a stand-in for the docker command that notes what it is told."""

import stat
import sys
from pathlib import Path

import msgspec
import pytest

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import roster
from caudal.cluster.settings import ClusterSettings
from caudal.medic.docker import DockerLauncher
from caudal.process.heart import HeartFile

DEPLOY = Path(__file__).parents[3] / "deploy"
STAND_IN = """\
#!{python}
import json, pathlib, sys
here = pathlib.Path({folder!r})
verb, name = sys.argv[1], sys.argv[-1]
(here / "said").open("a").write(" ".join(sys.argv[1:]) + "\\n")
state = here / f"{{name}}.running"
if verb == "start":
    state.touch()
elif verb in ("kill", "stop"):
    state.unlink(missing_ok=True)
elif verb == "inspect":
    began = "2026-01-01T00:00:00.000000000Z"
    print(json.dumps({{"Running": state.exists(), "StartedAt": began}}))
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    (tmp_path / "cluster.toml").write_bytes((DEPLOY / "cluster" / "cluster.toml").read_bytes())
    found = Cluster.open(tmp_path)
    found.lay_out()
    return found


@pytest.fixture
def launcher(cluster: Cluster, tmp_path: Path) -> DockerLauncher:
    program = tmp_path / "docker"
    program.write_text(STAND_IN.format(python=sys.executable, folder=str(tmp_path)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return DockerLauncher(cluster, str(program))


def test_start_is_idempotent_and_kills_what_hangs(
    cluster: Cluster, launcher: DockerLauncher, tmp_path: Path
) -> None:
    worker = next(one for one in cluster.here if one.name == "worker-1")
    assert launcher.start(worker, 0) == 1
    assert launcher.start(worker, 0) is None
    record = launcher.record("worker-1")
    assert record is not None
    assert (record.incarnation, record.gone) == (1, False)
    assert record.age > 1_000_000
    assert launcher.start(worker, 1) == 2
    said = (tmp_path / "said").read_text().splitlines()
    assert [line for line in said if "inspect" not in line] == [
        "kill worker-1",
        "start worker-1",
        "kill worker-1",
        "start worker-1",
    ]


def test_a_container_that_died_is_gone_and_stop_leaves_no_record(
    cluster: Cluster, launcher: DockerLauncher, tmp_path: Path
) -> None:
    worker = next(one for one in cluster.here if one.name == "worker-1")
    launcher.start(worker, 0)
    (tmp_path / "worker-1.running").unlink()
    record = launcher.record("worker-1")
    assert record is not None
    assert record.gone
    launcher.stop("worker-1", 5)
    assert launcher.record("worker-1") is None
    assert launcher.names() == []


def test_hearts_name_paths_as_containers_see_them(
    cluster: Cluster, launcher: DockerLauncher
) -> None:
    launcher.start(next(one for one in cluster.here if one.name == "worker-1"), 0)
    heart = msgspec.json.decode(
        (cluster.run_folder / "worker-1.heart").read_bytes(), type=HeartFile
    )
    assert (heart.folder, heart.secret) == ("/cluster/run/local", "/cluster/secret")


def test_the_compose_file_has_a_container_for_every_member() -> None:
    compose = msgspec.yaml.decode((DEPLOY / "compose.yaml").read_bytes())
    settings = msgspec.toml.decode(
        (DEPLOY / "cluster" / "cluster.toml").read_bytes(), type=ClusterSettings
    )
    services = compose["services"]
    for member in roster(settings):
        service = services[member.name]
        assert service["container_name"] == member.name
        assert service["command"][:3] == [
            member.kind,
            "--heart",
            f"/cluster/run/local/{member.name}.heart",
        ]
        if member.port and member.kind == "gateway":
            assert str(member.port) in service["command"]
