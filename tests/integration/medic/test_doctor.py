"""What the doctor says of tokens, certificates (made by openssl), medics and secrets."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.acceptance.cluster import CAUDAL
from tests.harness.certificates import make_authority, make_server
from tests.harness.cluster_folder import laid_out
from tests.harness.gateway_place import ALICE, BERTA, write_token
from tests.harness.small_disk import fill, small_disk

from caudal.broker import MemoryBroker
from caudal.cli.status import ExitStatus
from caudal.cluster import doctor
from caudal.cluster.doctor import _access, _hosts, _medics, examine
from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE
from caudal.errors import BrokerError, BrokerLoginError
from caudal.formats.keys import Lane
from caudal.process.records import write_record


def test_the_doctor_looks_at_tokens_and_certificates(tmp_path: Path) -> None:
    text = 'broker = "amqp://x@127.0.0.1:1/"\ntokens = "who"\n'
    text += '[tls]\ncertificate = "c"\nkey = "k"\n[hosts.a]\n'
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    cluster = Cluster.open(tmp_path)
    assert "who cannot be read" in _found(cluster)["files"]
    write_token(tmp_path / "who", "alice", ALICE)
    assert "cannot be used" in _found(cluster)["files"]
    pair = make_server(tmp_path, make_authority(tmp_path), "gateway")
    pair.certificate.rename(tmp_path / "c")
    pair.key.rename(tmp_path / "k")
    found = _found(cluster)
    assert found["tokens"] == "of 1 owners"
    assert found["certificate"] == "c matches its key"


def test_the_doctor_finds_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        cluster = laid_out(disk / "cluster", medics=2)
        fill(disk)
        found = {one.what: one for one in examine(cluster)}
    assert found["disk"].found == "0 MB free"
    assert found["disk"].remedy == f"make room on the disk of {cluster.folder}"
    assert "the disk is full; free some space" in found["store"].found


def test_the_doctor_wants_three_workers_for_several_owners(tmp_path: Path) -> None:
    text = 'broker = "amqp://x@127.0.0.1:1/"\ntokens = "who"\n[hosts.a]\nworkers = 2\n'
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    write_token(tmp_path / "who", "alice", ALICE)
    assert "workers" not in _found(Cluster.open(tmp_path))
    write_token(tmp_path / "who", "berta", BERTA)
    assert _found(Cluster.open(tmp_path))["workers"].startswith("2 for 2 owners")
    (tmp_path / FILE).write_text(text.replace("workers = 2", "workers = 3"), encoding="utf-8")
    assert "workers" not in _found(Cluster.open(tmp_path))


def test_the_doctor_wants_two_medics_on_each_of_several_hosts(tmp_path: Path) -> None:
    text = 'broker = "amqp://x@127.0.0.1:1/"\n[hosts.a]\nmedics = 1\n'
    text += '[hosts.b]\naddress = "127.0.0.2"\nmedics = 2\n'
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    findings = {one.what: one for one in _hosts(Cluster.open(tmp_path, "a"))}
    assert findings["medics"].found.startswith("fewer than two on a: without one, nothing there")
    assert "write medics = 2" in findings["medics"].remedy
    assert findings["secrets"].found == "secret missing"
    (tmp_path / FILE).write_text(text.replace("medics = 1", "medics = 2"), encoding="utf-8")
    (tmp_path / "secret").write_text("00" * 32)
    assert not any(one.remedy for one in _hosts(Cluster.open(tmp_path, "a")))


@pytest.mark.parametrize(("each", "is_bad"), [("128GB", True), ("0.5GB", False)])
def test_the_doctor_counts_the_memory_that_cluster_toml_gives_each_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each: str, is_bad: bool
) -> None:
    """Here on a machine with 4 GB."""
    text = f'broker = "embedded"\nworker_memory = "{each}"\n[hosts.a]\ngateways = 0\nworkers = 6\n'
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1_000_000}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    (finding,) = doctor._memory(Cluster.open(tmp_path))
    assert ("lower worker_memory" in finding.remedy) is is_bad
    (tmp_path / FILE).write_text(text.replace("workers = 6", "workers = 1"), encoding="utf-8")
    (finding,) = doctor._memory(Cluster.open(tmp_path))
    assert ("lower worker_memory" in finding.remedy) is is_bad


@pytest.mark.parametrize("medics", [0, 1])
def test_the_doctor_misses_medics_and_workers(tmp_path: Path, medics: int) -> None:
    text = f'broker = "amqp://x@127.0.0.1:1/"\n[hosts.a]\nmedics = {medics}\nworkers = 0\n'
    text += '[hosts.b]\naddress = "127.0.0.2"\nmedics = 2\nworkers = 0\n'
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    findings = {one.what: one for one in _hosts(Cluster.open(tmp_path, "b"))}
    assert "fewer than two on a" in findings["medics"].found
    assert "every job waits" in findings["workers"].found
    assert findings["workers"].remedy.startswith("caudal scale worker=2 --dir")


def test_the_doctor_says_that_the_secret_of_running_processes_is_gone(tmp_path: Path) -> None:
    cluster = laid_out(tmp_path, medics=1)
    write_record(cluster.run_folder, "medic-1", 1, os.getpid())
    (finding,) = _medics(cluster)
    assert (finding.what, finding.found) == ("cluster", "no medic answers")
    cluster.secret.unlink()
    (finding,) = _medics(cluster)
    assert (finding.what, "restore it" in finding.remedy) == ("secret", True)


@pytest.mark.parametrize(
    ("broker", "error", "remedy"),
    [
        ("amqp://u:p@b/", BrokerLoginError, "correct `broker` in cluster.toml"),
        ("amqp://u:p@b/", BrokerError, "start it, or correct `broker` in cluster.toml"),
        ("private", BrokerLoginError, "compare broker.password on all hosts"),
        ("private", BrokerError, "start it on host a (`caudal up --dir FOLDER --host a`), or"),
    ],
)
def test_what_the_doctor_advises_about_a_broker_depends_on_why_it_does_not_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broker: str,
    error: type[BrokerError],
    remedy: str,
) -> None:
    class Silent(MemoryBroker):
        def depths(self) -> dict[Lane, int]:
            raise error("no")

    text = f'broker = "{broker}"\n[hosts.a]\nbroker = {str(broker == "private").lower()}\n'
    (tmp_path / FILE).write_text(f'{text}[hosts.b]\naddress = "127.0.0.2"\n', encoding="utf-8")
    (tmp_path / "broker.password").write_text("00" * 32)
    cluster = Cluster.open(tmp_path, "b")
    cluster.run_folder.mkdir(parents=True)
    monkeypatch.setattr(doctor, "open_broker", lambda url, name: Silent())
    (finding,) = doctor._broker(cluster)
    assert finding.remedy.startswith(remedy)


def test_findings_come_through_a_pipe_if_some_are_bad(tmp_path: Path) -> None:
    cluster = laid_out(tmp_path, medics=1)
    command = [*CAUDAL, "doctor", "--dir", str(cluster.folder)]
    usual = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=usual)
    assert done.returncode == ExitStatus.JOB
    assert "BAD broker: " in done.stdout
    assert done.stderr.startswith("caudal: fix the ")


def _found(cluster: Cluster) -> dict[str, str]:
    return {one.what: one.found for one in _access(cluster)}
