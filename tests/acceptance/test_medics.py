"""Real medics over real processes: what dies comes back, on its own host, and nobody else suffers.

The broker of these clusters is away on purpose: workers wait for it, beat, and cost little.
"""

import contextlib
import itertools
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from caudal.cli.status import ExitStatus
from caudal.cluster.folder import Cluster
from caudal.cluster.notices import notices
from caudal.cluster.upkeep import look
from caudal.formats.medic_status import ProcessStatus, StatusReply
from caudal.medic.supervision import State
from caudal.process.heart import STORE_PASSED
from caudal.process.records import ProcessRecord, is_running, read_record, send_signal
from caudal.process.wire import make_secret
from tests.acceptance.cluster import CAUDAL, RealCluster, free_hundred, running
from tests.harness.rabbit import rabbit as rabbit
from tests.harness.rabbit import rabbit_url as rabbit_url
from tests.harness.waiting import until


def told(cluster: Cluster) -> StatusReply:
    found = look(cluster)
    while found is None:
        found = look(cluster)
    return found


def process(cluster: Cluster, name: str) -> ProcessStatus:
    return next(one for one in told(cluster).processes if one.name == name)


def record(cluster: Cluster, name: str) -> ProcessRecord:
    host = next(one.host for one in cluster.members if one.name == name)
    found = read_record(cluster.folder / "run" / host, name)
    assert found is not None
    return found


def is_back(cluster: Cluster, name: str, before: ProcessRecord) -> bool:
    now = process(cluster, name)
    return now.state == State.HEALTHY and now.incarnation > before.incarnation


@pytest.fixture(scope="module")
def one_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealCluster, Cluster]]:
    folder = tmp_path_factory.mktemp("cluster")
    with running(folder, "--broker", "embedded", "--gateways", "0", "--workers", "1") as real:
        yield real, Cluster.open(folder)


def test_the_leader_dies_another_leads_and_brings_it_back(
    one_host: tuple[RealCluster, Cluster],
) -> None:
    _, cluster = one_host
    until(lambda: told(cluster).leader == "medic-3")
    before = record(cluster, "medic-3")
    send_signal(before, signal.SIGKILL)
    until(lambda: is_back(cluster, "medic-3", before))
    until(lambda: told(cluster).leader == "medic-3")


def test_a_start_notes_that_the_store_passed_its_races(
    one_host: tuple[RealCluster, Cluster],
) -> None:
    """So processes that medics start do not race again."""
    _, cluster = one_host
    until(lambda: all_healthy(cluster))
    assert (cluster.run_folder / STORE_PASSED).exists()


def test_a_frozen_worker_is_killed_and_replaced(one_host: tuple[RealCluster, Cluster]) -> None:
    _, cluster = one_host
    before = record(cluster, "worker-1")
    send_signal(before, signal.SIGSTOP)
    until(lambda: is_back(cluster, "worker-1", before))
    assert not is_running(before)


def test_a_worker_that_can_open_no_file_is_replaced(
    one_host: tuple[RealCluster, Cluster],
) -> None:
    _, cluster = one_host
    before = record(cluster, "worker-1")
    hard = resource.prlimit(before.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(before.pid, resource.RLIMIT_NOFILE, (0, hard))
    until(lambda: is_back(cluster, "worker-1", before))
    assert not is_running(before)
    assert "Too many open files" in cluster.log_of("worker-1").read_text()


def test_one_that_is_frozen_while_it_starts_is_replaced(
    one_host: tuple[RealCluster, Cluster],
) -> None:
    _, cluster = one_host
    first = record(cluster, "worker-1")
    send_signal(first, signal.SIGKILL)
    until(lambda: record(cluster, "worker-1") != first)
    second = record(cluster, "worker-1")
    send_signal(second, signal.SIGSTOP)
    until(lambda: is_back(cluster, "worker-1", second))
    assert not is_running(second)


@pytest.mark.long
def test_medics_that_were_frozen_together_restart_nobody(
    one_host: tuple[RealCluster, Cluster],
) -> None:
    _, cluster = one_host
    until(lambda: all_healthy(cluster))
    before = {one.name: record(cluster, one.name) for one in cluster.members}
    medics = [before[name] for name in before if name.startswith("medic")]
    for one in medics:
        send_signal(one, signal.SIGSTOP)
    time.sleep(8)  # four times as long as a silence that counts as death
    for one in medics:
        send_signal(one, signal.SIGCONT)
    until(lambda: told(cluster).leader == "medic-3")
    time.sleep(4)  # twice the time after which a suspicion would have been acted on
    assert {name: record(cluster, name) for name in before} == before


def all_healthy(cluster: Cluster) -> bool:
    return all(one.state == State.HEALTHY for one in told(cluster).processes)


def test_scale_starts_and_stops_workers(one_host: tuple[RealCluster, Cluster]) -> None:
    real, cluster = one_host
    real.caudal("scale", "worker=2")
    grown = Cluster.open(cluster.folder)
    until(lambda: any(one.name == "worker-2" for one in told(grown).processes))
    until(lambda: process(grown, "worker-2").state == State.HEALTHY)
    second = record(grown, "worker-2")
    real.caudal("scale", "worker=1")
    until(lambda: not is_running(second))
    assert process(cluster, "worker-1").state == State.HEALTHY


def test_more_medics_in_the_file_of_a_running_host_harm_nobody(
    one_host: tuple[RealCluster, Cluster],
) -> None:
    """Medics of the start have no link to a new one, and nobody sends it heartbeats."""
    real, cluster = one_host
    until(lambda: all_healthy(cluster))
    before = {one.name: record(cluster, one.name) for one in cluster.members}
    file = cluster.folder / "cluster.toml"
    text = file.read_text()
    file.write_text(text.replace("medics = 3", "medics = 4").replace("workers = 1", "workers = 2"))
    try:
        until(lambda: is_well(Cluster.open(cluster.folder), "worker-2"))
        time.sleep(4)  # twice the silence after which who is not heard is dead
        assert {name: record(cluster, name) for name in before} == before
        assert told(cluster).leader == "medic-3"
        shown = " ".join(real.caudal("status").stderr.split())
        assert "says medics = 4 for host local, but the running processes use 3" in shown
        assert "caudal down" in shown
    finally:
        file.write_text(text)
    until(lambda: all(one.name != "worker-2" for one in told(cluster).processes))


def is_well(cluster: Cluster, name: str) -> bool:
    there = [one for one in told(cluster).processes if one.name == name]
    return [one.state for one in there] == [State.HEALTHY]


@pytest.mark.long
def test_a_rolling_restart_replaces_all_and_stops_at_one_that_does_not_come_back(
    one_host: tuple[RealCluster, Cluster],
) -> None:
    real, cluster = one_host
    until(lambda: all(one.state == State.HEALTHY for one in told(cluster).processes))
    before = {one.name: record(cluster, one.name) for one in cluster.here}
    done = real.caudal("restart", "--rolling")
    order = [line.split(":")[0] for line in done.stderr.splitlines()]
    assert order == ["medic-1", "medic-2", "medic-3", "worker-1"]
    for name, old in before.items():
        assert not is_running(old)
        assert record(cluster, name).incarnation == old.incarnation + 1
    file = cluster.folder / "cluster.toml"
    text = file.read_text()
    file.write_text(text.replace('workspace = ""', 'workspace = "/proc"'))
    try:  # until medics have read the file, they start it once more as it was
        refused = next(
            done
            for _ in itertools.count()
            if (done := real.caudal("restart", "worker-1", check=False)).returncode
        )
    finally:
        file.write_text(text)
    assert refused.returncode == ExitStatus.JOB, refused.stderr
    assert "worker-1 does not become healthy after its restart" in refused.stderr
    assert "cannot use /proc/" in refused.stderr
    real.caudal("restart", "worker-1")


def test_what_keeps_dying_is_shown_as_failing_with_its_last_words(tmp_path: Path) -> None:
    arguments = ("--broker", "embedded", "--gateways", "0", "--workers", "1", "--medics", "1")
    with running(tmp_path, *arguments) as real:
        cluster = Cluster.open(tmp_path)
        text = (tmp_path / "cluster.toml").read_text()
        (tmp_path / "cluster.toml").write_text(
            text.replace('workspace = ""', 'workspace = "/proc"')
        )
        time.sleep(6)  # medics read the file every five seconds
        send_signal(record(cluster, "worker-1"), signal.SIGKILL)
        until(lambda: process(cluster, "worker-1").state == State.FAILING)
        shown = real.caudal("status").stdout
        assert "failing" in shown
        assert "cannot use /proc/" in shown


def test_down_leaves_no_process_and_no_lock(tmp_path: Path) -> None:
    arguments = ("--broker", "embedded", "--gateways", "0", "--workers", "1", "--medics", "2")
    with running(tmp_path, *arguments) as real:
        cluster = Cluster.open(tmp_path)
        before = [record(cluster, one.name) for one in cluster.members]
        real.caudal("down")
        assert not any(is_running(one) for one in before)
        assert {one.suffix for one in cluster.run_folder.iterdir()} == {".json"}
        again = real.caudal("up")
        assert "leader" in again.stdout
        assert real.caudal("status").stdout.count("healthy") == 3
        assert {one.restarts for one in told(cluster).processes} == {0}


HOSTS = """\
broker = "{broker}"
[hosts.a]
address = "127.0.0.2"
port = {port}
medics = 1
gateways = 0
workers = 1
[hosts.b]
address = "127.0.0.3"
port = {port}
medics = 1
gateways = 0
workers = 1
[hosts.c]
address = "127.0.0.4"
port = {port}
medics = 1
gateways = 0
workers = 1
"""


@pytest.mark.long
def test_three_hosts_each_restarts_its_own(tmp_path: Path, rabbit_url: str) -> None:
    (tmp_path / "cluster.toml").write_text(HOSTS.format(broker=rabbit_url, port=free_hundred()))
    real = RealCluster(tmp_path, 0)
    refused = real.caudal("up", "--host", "a", check=False)
    assert "secret is missing, and all hosts need the same one" in refused.stderr
    make_secret(tmp_path / "secret")
    started = []
    try:
        for host in "abc":
            real.caudal("up", "--host", host)
            started.append(host)
        cluster = Cluster.open(tmp_path, "a")
        until(lambda: told(cluster).leader == "medic-1.c")
        killed, frozen = record(cluster, "worker-1.a"), record(cluster, "worker-1.b")
        send_signal(killed, signal.SIGKILL)
        send_signal(frozen, signal.SIGSTOP)
        until(lambda: is_back(cluster, "worker-1.a", killed))
        until(lambda: is_back(cluster, "worker-1.b", frozen))
        for host in "ab":
            words = (tmp_path / "logs" / f"medic-1.{host}.log").read_text()
            assert f"started process=worker-1.{host}" in words
        leader = record(cluster, "medic-1.c")
        send_signal(leader, signal.SIGKILL)  # the only medic of its host: nobody can start it
        until(lambda: told(cluster).leader == "medic-1.b")
        until(lambda: process(cluster, "medic-1.c").state == State.UNATTENDED)
        shown = real.caudal("status", "--host", "a").stdout
        assert "host c has no running medic" in shown
        assert f"caudal up --dir {tmp_path} --host c" in " ".join(shown.split())
        real.caudal("up", "--host", "c")
        until(lambda: told(cluster).leader == "medic-1.c")
    finally:
        for host in started:
            real.caudal("down", "--host", host, check=False)


PAIR = """\
broker = "amqp://nobody@127.0.0.1:1/"
{more}
[hosts.a]
address = "127.0.0.2"
port = {port}
medics = 1
gateways = 0
workers = 0
[hosts.b]
address = "127.0.0.3"
port = {port}
medics = 1
gateways = 0
workers = 0
"""


@contextlib.contextmanager
def two_hosts(folder: Path, others: str = "") -> Iterator[RealCluster]:
    """Hosts a and b with a folder each; b, which is up, has these lines more in its file."""
    port = free_hundred()
    hosts = {name: RealCluster(folder / name, 0) for name in "ab"}
    for name, real in hosts.items():
        real.folder.mkdir()
        text = PAIR.format(port=port, more=others if name == "b" else "")
        (real.folder / "cluster.toml").write_text(text)
        make_secret(real.folder / "secret")
    if others:
        shutil.copy(hosts["a"].folder / "secret", hosts["b"].folder / "secret")
    try:
        hosts["a"].caudal("up", "--host", "a")
        yield hosts["b"]
    finally:
        for name, real in hosts.items():
            real.caudal("down", "--host", name, check=False)


def test_a_host_that_was_taken_down_is_heard_again(tmp_path: Path) -> None:
    """Its processes go on with their numbers, also if it has lost its records."""
    with two_hosts(tmp_path, "# the same file and the same secret on both") as b:
        b.caudal("up", "--host", "b")
        a, seen = RealCluster(tmp_path / "a", 0), Cluster.open(b.folder, "b")
        for incarnation in (2, 3):
            until(lambda: process(seen, "medic-1.a").state == State.HEALTHY)
            a.caudal("down", "--host", "a")
            if incarnation == 3:
                shutil.rmtree(a.folder / "run")
            until(lambda: process(seen, "medic-1.a").state == State.UNATTENDED)
            a.caudal("up", "--host", "a")
            now = process(seen, "medic-1.a")
            assert (now.state, now.incarnation) == (State.HEALTHY, incarnation)


def test_a_host_is_added_while_the_others_go_on(tmp_path: Path) -> None:
    """They keep to the hosts of their start until each is taken down and up."""
    with two_hosts(tmp_path, "# the same file and the same secret on both") as b:
        b.caudal("up", "--host", "b")
        a, c = RealCluster(tmp_path / "a", 0), RealCluster(tmp_path / "c", 0)
        shutil.copytree(a.folder, c.folder, ignore=shutil.ignore_patterns("run", "logs"))
        text = (a.folder / "cluster.toml").read_text()
        text += "[hosts.c]" + text.partition("[hosts.b]")[2].replace("127.0.0.3", "127.0.0.4")
        for real in (a, b, c):
            (real.folder / "cluster.toml").write_text(text)
        before = record(Cluster.open(a.folder, "a"), "medic-1.a")
        try:
            c.caudal("up", "--host", "c")
            time.sleep(4)  # twice the silence after which who is not heard is dead
            seen = Cluster.open(a.folder, "a")
            assert told(seen).leader == "medic-1.b"
            assert "has the hosts a, b, c, but the running processes know a, b" in seen.strayed
            assert record(seen, "medic-1.a") == before
            for real, host in ((a, "a"), (b, "b")):
                real.caudal("down", "--host", host)
                real.caudal("up", "--host", host)
            whole = Cluster.open(a.folder, "a")
            until(lambda: all_healthy(whole) and told(whole).leader == "medic-1.c")
            assert {one.name for one in told(whole).processes} == {f"medic-1.{it}" for it in "abc"}
            assert not whole.strayed
            assert not notices(whole, told(whole))
        finally:
            c.caudal("down", "--host", "c", check=False)


def said(real: RealCluster, *words: str) -> str:
    done = real.caudal(*words, "--host", "b", check=False)
    return " ".join((done.stdout + done.stderr).split())


def test_hosts_with_different_secrets_are_told_so_by_up_status_and_doctor(tmp_path: Path) -> None:
    with two_hosts(tmp_path) as real:
        words = "messages that another secret signed: compare"
        assert words in said(real, "up")
        assert words in said(real, "status")
        assert "BAD cluster: medic-1.b received" in said(real, "doctor")


def test_hosts_with_different_settings_are_told_which(tmp_path: Path) -> None:
    with two_hosts(tmp_path, 'store = "elsewhere"') as real:
        words = r"cluster.toml has another store on (a|b) than on the host of medic-1.(b|a)"
        assert re.search(words, said(real, "up"))
        assert re.search(words, said(real, "status"))
        assert re.search(f"BAD cluster: {words}", said(real, "doctor"))


@pytest.mark.parametrize("command", ["status", "down", "logs", "scale", "doctor", "chaos"])
def test_a_folder_without_a_cluster_is_explained(tmp_path: Path, command: str) -> None:
    more = {"logs": ["worker-1"], "scale": ["worker=2"]}.get(command, [])
    done = subprocess.run(
        [*CAUDAL, command, *more, "--dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "caudal up" in done.stderr
    assert "Traceback" not in done.stderr
