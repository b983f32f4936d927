"""deploy/haproxy.cfg before the gateways of a real cluster: one address, even if one dies."""

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cluster import CAUDAL, RealCluster, running

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


def test_one_address_answers_while_a_gateway_is_dead(
    cluster: RealCluster, address: str, tmp_path: Path
) -> None:
    while not is_ready(address):
        time.sleep(0.1)
    data = tmp_path / "data"
    subprocess.run(
        [*CAUDAL, "generate", "books", "--scale", "0.002", "--out", str(data)], check=True
    )
    words = ["run", "books", "--data", str(data), "--format", "json"]
    done = subprocess.run([*CAUDAL, *words], capture_output=True, text=True, check=True)
    expected = json.loads(done.stdout)
    assert submitted(address, data) == expected
    for name in ("gateway-1", "gateway-2"):
        cluster.caudal("chaos", "--kills", "1", "--name", name, "--every", "0.01")
        assert submitted(address, data) == expected
