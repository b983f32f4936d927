"""Which processes `caudal restart` replaces, in which order, and when one is back."""

import resource
from pathlib import Path

import pytest

from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.cluster import rolling
from caudal.cluster.folder import Cluster
from caudal.cluster.rolling import chosen, is_healthy, is_lost
from caudal.cluster.settings import FILE
from caudal.cluster.write_config import write_settings
from caudal.errors import UsageError
from caudal.formats.medic_status import ProcessStatus, StatusReply


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    write_settings(tmp_path, broker="private", medics=2, gateways=1, workers=1)
    return Cluster.open(tmp_path)


def test_medics_come_first_and_the_broker_only_if_it_is_named(cluster: Cluster) -> None:
    names = [one.name for one in chosen(cluster.here, [])]
    assert names == ["medic-1", "medic-2", "worker-1", "gateway-1"]
    named = [one.name for one in chosen(cluster.here, ["worker-1", "broker"])]
    assert named == ["worker-1", "broker"]


def test_a_name_that_nobody_has_is_refused(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match=r"no process 'worker-9' here: .*worker-1"):
        chosen(cluster.here, ["worker-9"])


@pytest.mark.parametrize(
    ("state", "incarnation", "is_back"),
    [("healthy", 3, True), ("healthy", 4, True), ("healthy", 2, False), ("starting", 3, False)],
)
def test_one_is_back_when_its_new_incarnation_is_healthy(
    state: str, incarnation: int, is_back: bool
) -> None:
    one = ProcessStatus("worker-1", "worker", "a", state, incarnation, 0, 0.1, 0, 0, 1, "", "a")
    told = StatusReply("medic-1", "leading", 1, "medic-1", [one])
    assert is_healthy(told, "worker-1", 3) is is_back
    assert not is_healthy(None, "worker-1", 3)


@pytest.mark.parametrize(("incarnation", "lost"), [(3, False), (5, False), (6, True)])
def test_one_that_died_three_times_is_not_awaited(incarnation: int, lost: bool) -> None:
    one = ProcessStatus("worker-1", "worker", "a", "dead", incarnation, 0, 0.1, 0, 0, 1, "", "a")
    told = StatusReply("medic-1", "leading", 1, "medic-1", [one])
    assert is_lost(told, "worker-1", 3) is lost


@pytest.mark.parametrize("words", [[], ["worker-1", "--rolling"]])
def test_the_command_wants_names_or_all(
    cluster: Cluster, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["restart", *words, "--dir", str(cluster.folder)]
    assert main(given) == ExitStatus.USAGE
    assert "name the processes, or give --rolling" in capsys.readouterr().err


def test_without_medics_nothing_is_restarted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rolling, "wait_until_healthy", lambda *_: None)
    given = ["restart", "--rolling", "--dir", str(cluster.folder)]
    assert main(given) == ExitStatus.UNREACHABLE
    assert "no medic of" in capsys.readouterr().err


def test_with_too_few_open_files_nothing_is_restarted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is started inherits the limit: processes that work would be replaced by ones that
    hang."""
    told = StatusReply("medic-1", "leading", 1, "medic-1", [])
    monkeypatch.setattr(rolling, "wait_until_healthy", lambda *_: told)
    monkeypatch.setattr(rolling, "unreachable", lambda cluster: ())
    monkeypatch.setattr(rolling, "launcher_of", lambda cluster: pytest.fail("it was restarted"))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    given = ["restart", "--rolling", "--dir", str(cluster.folder)]
    assert main(given) == ExitStatus.USAGE
    assert "may open only 64 files, which is too few: raise it" in capsys.readouterr().err


def test_nothing_is_restarted_from_where_the_store_is_not_reached(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is started has the environment of this command: a medic would pass it on."""
    file = cluster.folder / FILE
    file.write_text(file.read_text().replace('store = "store"', 'store = "s3://bucket/x"'))
    told = StatusReply("medic-1", "leading", 1, "medic-1", [])
    monkeypatch.setattr(rolling, "wait_until_healthy", lambda *_: told)
    monkeypatch.setattr(rolling, "launcher_of", lambda cluster: pytest.fail("it was restarted"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    given = ["restart", "--rolling", "--dir", str(cluster.folder)]
    assert main(given) == ExitStatus.USAGE
    assert "nothing is restarted, since store is not reached from here" in capsys.readouterr().err
