"""What all processes must agree on stays while anything runs, whatever cluster.toml says."""

import os
from pathlib import Path

import pytest
from tests.acceptance.cluster import free_hundred

from caudal.cluster.doctor import examine
from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE
from caudal.cluster.start_note import remove_note, write_note
from caudal.cluster.upkeep import start_all, stop_all
from caudal.cluster.write_config import write_settings
from caudal.errors import UsageError
from caudal.process.heart import STORE_PASSED
from caudal.process.records import write_record

SECRET = "amqp://me:hidden@127.0.0.1:1/"


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Started, with this process as its only worker."""
    write_settings(tmp_path, broker=SECRET, gateways=0, workers=1, port=free_hundred())
    found = Cluster.open(tmp_path)
    found.lay_out()
    write_note(found.run_folder, found.settings)
    write_record(found.run_folder, "worker-1", 1, os.getpid())
    return found


def edited(cluster: Cluster, *changes: tuple[str, str], host: str | None = None) -> Cluster:
    path = cluster.folder / FILE
    text = path.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    return Cluster.open(cluster.folder, host)


OTHER_STORE = ('store = "store"', 'store = "other"')
OTHER_NAME = ('name = "caudal"', 'name = "other"')
OTHER_BROKER = (SECRET, "amqp://me:hidden@127.0.0.1:2/")
MORE_MEDICS = ("medics = 3", "medics = 4")
OTHER_ADDRESS = ('address = "127.0.0.1"', 'address = "127.0.0.2"')
NEW_HOST = ("[hosts.local]", "[hosts.new]\nworkers = 1\n[hosts.local]")
PRIVATE_BROKER = (SECRET, "private"), ("broker = false", "broker = true")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([OTHER_STORE], r'says store = "other", but the running processes use "store"'),
        ([OTHER_NAME], r'says name = "other", but the running processes use "caudal"'),
        ([OTHER_BROKER], r"names another broker"),
        ([*PRIVATE_BROKER], r"names another broker"),
        ([MORE_MEDICS], r"says medics = 4 for host local, but the running processes use 3"),
        ([OTHER_ADDRESS], r"says address = 127.0.0.2 for host local, but .* use 127.0.0.1"),
        ([NEW_HOST], r"has the hosts new, local, but the running processes know local"),
    ],
)
def test_while_something_runs_they_are_as_noted(
    cluster: Cluster, changes: list[tuple[str, str]], words: str
) -> None:
    changed = edited(cluster, *changes, host="local")
    assert changed.settings == cluster.settings
    with pytest.raises(UsageError, match=words) as caught:
        start_all(changed)
    assert "caudal down" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_running_host_keeps_its_port(cluster: Cluster) -> None:
    port = cluster.settings.hosts["local"].port
    metrics = (f"metrics = {port + 120}", "metrics = 0")
    changed = edited(cluster, (f"port = {port} ", f"port = {port - 100} "), metrics)
    assert changed.settings.hosts["local"].port == port
    words = f"port = {port - 100} for host local, but the running processes use {port}"
    assert words in changed.strayed


def test_the_doctor_says_so(cluster: Cluster) -> None:
    finding = next(examine(edited(cluster, OTHER_STORE)))
    assert 'store = "other"' in finding.found
    assert "caudal down" in finding.remedy


def test_counts_follow_the_file_at_once(cluster: Cluster) -> None:
    changed = edited(cluster, ("workers = 1", "workers = 3"), OTHER_STORE)
    assert changed.settings.hosts["local"].workers == 3
    assert changed.settings.store == "store"


def test_with_nothing_running_the_file_decides(cluster: Cluster) -> None:
    write_record(cluster.run_folder, "worker-1", 1, 0)
    changed = edited(cluster, OTHER_STORE)
    assert (changed.settings.store, changed.strayed) == ("other", "")


def test_down_forgets_what_was_noted(cluster: Cluster) -> None:
    write_record(cluster.run_folder, "worker-1", 1, 0)
    stop_all(cluster)
    assert [one.name for one in cluster.run_folder.iterdir()] == ["worker-1.json"]


def test_a_lost_secret_is_not_replaced_while_something_runs(cluster: Cluster) -> None:
    cluster.secret.unlink()
    with pytest.raises(UsageError, match=r"secret is missing.*restore it.*caudal down"):
        start_all(cluster)
    assert not cluster.secret.exists()


@pytest.mark.parametrize("text", ["name = [", None])
def test_a_file_that_cannot_be_read_is_replaced_by_the_note(
    cluster: Cluster, text: str | None
) -> None:
    path = cluster.folder / FILE
    path.unlink()
    if text is not None:
        path.write_text(text)
    found = Cluster.open_anyway(cluster.folder)
    assert (found.settings, found.host, found.run_folder) == (
        cluster.settings,
        "local",
        cluster.run_folder,
    )
    assert str(path) in found.strayed
    with pytest.raises(UsageError, match=FILE):
        Cluster.open_anyway(cluster.folder, "other")


def test_every_note_begins_a_new_test_of_the_store(cluster: Cluster) -> None:
    passed = cluster.run_folder / STORE_PASSED
    passed.touch()
    write_note(cluster.run_folder, cluster.settings)
    assert not passed.exists()
    passed.touch()
    remove_note(cluster.run_folder)
    assert not passed.exists()
