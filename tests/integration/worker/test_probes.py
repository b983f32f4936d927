"""What orchestrators ask a worker: whether it lives, and whether it takes tasks."""

import urllib.error
import urllib.request
from pathlib import Path

from tests.harness.rabbit import require_rabbit, started
from tests.harness.waiting import until
from tests.harness.worker_processes import working


def test_a_worker_that_takes_tasks_is_ready_for_probes(tmp_path: Path) -> None:
    store, broker = str(tmp_path / "store"), f"embedded:{tmp_path / 'broker'}"
    with working(tmp_path, store, broker, "--name", "a", "--metrics-port", "0") as worker:
        port = worker.wait_for("ready")["metrics_port"]
        assert status(port, "/healthz") == 200
        until(lambda: status(port, "/readyz") == 200)


def test_a_worker_without_its_broker_is_not_ready_until_it_is_back(tmp_path: Path) -> None:
    require_rabbit()
    (tmp_path / "rabbit").mkdir()
    with started(tmp_path / "rabbit") as node:
        store, broker = str(tmp_path / "store"), f"{node.url}?prefix=probes"
        with working(tmp_path, store, broker, "--name", "a", "--metrics-port", "0") as worker:
            port = worker.wait_for("ready")["metrics_port"]
            until(lambda: status(port, "/readyz") == 200)
            node.kill()
            until(lambda: status(port, "/readyz") == 503)
            assert status(port, "/healthz") == 200, "a restart would not help"
            node.start()
            until(lambda: status(port, "/readyz") == 200)


def status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
