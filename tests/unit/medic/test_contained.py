"""A cluster in containers: what runs is known by its locks, and remedies name docker compose."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.acceptance.cluster import free_hundred

from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.cluster.commands import command
from caudal.cluster.doctor import examine
from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE
from caudal.cluster.start_note import read_note
from caudal.cluster.upkeep import look, nobody_answers, note_first_start
from caudal.errors import UsageError
from caudal.process.locks import take_lock

TOML = (Path(__file__).parents[3] / "deploy" / "cluster.toml").read_text()
OTHER_STORE = ('store = "store"', 'store = "other"')


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "given.toml"
    text = TOML.replace("port = 8420", f"port = {free_hundred()}")
    path.write_text(text.replace("metrics = 8540", "metrics = 0"))
    return path


@pytest.fixture
def cluster(tmp_path: Path, source: Path) -> Cluster:
    assert init(tmp_path / "cluster", source) == ExitStatus.OK
    return Cluster.open(tmp_path / "cluster")


@pytest.fixture
def running(cluster: Cluster) -> Iterator[Cluster]:
    """A container elsewhere runs its gateway: its pid means nothing here."""
    with closing(take_lock(cluster.run_folder / "gateway-1.lock", "gateway-1")):
        yield cluster


def init(folder: Path, source: Path) -> int:
    return main(["init", "--from", str(source), "--dir", str(folder)])


def edited(cluster: Cluster) -> Cluster:
    path = cluster.folder / FILE
    path.write_text(path.read_text().replace(*OTHER_STORE))
    return Cluster.open(cluster.folder)


def test_the_store_is_fixed_while_a_container_runs(running: Cluster) -> None:
    changed = edited(running)
    assert changed.settings.store == "store"
    assert 'store = "other", but the running processes use "store"' in changed.strayed
    finding = next(examine(changed))
    assert finding.remedy == ("stop the cluster first (`docker compose down`), or undo the change")


def test_init_refuses_other_settings_than_those_of_running_containers(
    running: Cluster, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited(running)
    assert init(running.folder, source) == ExitStatus.USAGE
    assert "`docker compose down`" in capsys.readouterr().err
    noted = read_note(running.run_folder)
    assert noted is not None
    assert noted.store == "store"


def test_init_makes_no_second_secret_beside_running_containers(
    running: Cluster, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running.secret.unlink()
    assert init(running.folder, source) == ExitStatus.USAGE
    words = capsys.readouterr().err
    assert "secret is missing, but running processes use it: restore it" in words
    assert "`docker compose down`" in words
    assert not running.secret.exists()


def test_a_lost_secret_is_told_by_status_and_doctor(running: Cluster) -> None:
    running.secret.unlink()
    with pytest.raises(UsageError, match=r"secret.*restore it, or stop .*`docker compose down`"):
        look(running)
    found = {one.what: one.remedy for one in examine(running)}
    assert "restore it" in found["secret"]


def test_the_doctor_misses_medics(running: Cluster) -> None:
    found = {one.what: (one.found, one.remedy) for one in examine(running)}
    assert found["cluster"] == ("no medic answers", "run `docker compose up -d`")
    assert "`docker compose up -d` starts" in str(nobody_answers(running))


def test_with_nothing_running_the_file_decides_and_the_first_to_start_notes_it(
    cluster: Cluster,
) -> None:
    changed = edited(cluster)
    assert (changed.settings.store, changed.strayed) == ("other", "")
    note_first_start(changed)
    noted = read_note(cluster.run_folder)
    assert noted is not None
    assert noted.store == "other"


def test_whoever_starts_beside_others_leaves_the_note(running: Cluster) -> None:
    note_first_start(edited(running))
    noted = read_note(running.run_folder)
    assert noted is not None
    assert noted.store == "store"


def test_commands_are_those_of_compose(cluster: Cluster) -> None:
    assert command(cluster, "down") == "docker compose down"
    assert command(cluster, "logs NAME") == "docker compose run --rm admin logs NAME"
