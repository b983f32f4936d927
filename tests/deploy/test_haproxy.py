"""deploy/haproxy.cfg before the gateways of a real cluster: one address, even if one dies."""

import contextlib
import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import MemberKind
from caudal.process.records import is_running, read_record, send_signal
from tests.acceptance.cluster import CAUDAL, RealCluster, running
from tests.harness.waiting import until

CONFIG = (Path(__file__).parents[2] / "deploy" / "haproxy.cfg").read_text()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with running(tmp_path_factory.mktemp("proxied") / "cluster", "--broker", "embedded") as found:
        yield found


@pytest.fixture(scope="module")
def address(cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    config = tmp_path_factory.mktemp("haproxy") / "haproxy.cfg"
    text = CONFIG.replace(":8400", f":{cluster.port + 45}")
    text = text.replace(":8421", f":{cluster.port + 1}").replace(":8422", f":{cluster.port + 2}")
    config.write_text(text)
    checked = subprocess.run(["haproxy", "-c", "-f", str(config)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "WARNING" not in checked.stdout + checked.stderr
    proxy = subprocess.Popen(["haproxy", "-db", "-f", str(config)], stderr=subprocess.PIPE)
    try:
        yield f"http://127.0.0.1:{cluster.port + 45}"
    finally:
        proxy.terminate()
        proxy.communicate()


def is_ready(address: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/readyz") as answer:
        return bool(answer.status == 200)
    return False


def submitted(address: str, data: Path) -> object:
    words = ["submit", "books", "--data", str(data), "--gateway", address, "--format", "json"]
    words += ["--patience", "600"]
    done = subprocess.run([*CAUDAL, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("books")
    command = [*CAUDAL, "generate", "books", "--scale", "0.002", "--out", str(folder)]
    subprocess.run(command, check=True)
    return folder


@contextlib.contextmanager
def frozen_medics(cluster: RealCluster) -> Iterator[None]:
    """Whoever dies meanwhile stays dead."""
    opened = Cluster.open(cluster.folder)
    medics = [one.name for one in opened.here if one.kind is MemberKind.MEDIC]
    records = [read_record(opened.run_folder, name) for name in medics]
    try:
        for record in records:
            assert record is not None
            send_signal(record, signal.SIGSTOP)
        yield
    finally:
        for record in records:
            if record is not None:
                send_signal(record, signal.SIGCONT)


@pytest.mark.parametrize("number", [1, 2])
def test_one_address_answers_while_a_gateway_is_dead(
    cluster: RealCluster, address: str, data: Path, number: int
) -> None:
    here = f"http://127.0.0.1:{cluster.port + number}"
    until(lambda: is_ready(address) and is_ready(here))
    words = ["run", "books", "--data", str(data), "--format", "json"]
    done = subprocess.run([*CAUDAL, *words], capture_output=True, text=True, check=True)
    expected = json.loads(done.stdout)
    assert submitted(address, data) == expected
    with frozen_medics(cluster):
        record = read_record(Cluster.open(cluster.folder).run_folder, f"gateway-{number}")
        assert record is not None
        assert send_signal(record, signal.SIGKILL)
        until(lambda: not is_running(record))
        for _ in range(3):  # the proxy may not know it yet, and then it does
            assert submitted(address, data) == expected
        assert not is_ready(here), "it was dead all the time"
    until(lambda: is_ready(here))
    assert submitted(address, data) == expected
