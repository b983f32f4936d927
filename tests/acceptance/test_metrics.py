"""Metrics of real medics and workers: who may read them, and which tokens are refused."""

import contextlib
import re
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from caudal.cli.status import ExitStatus
from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE
from caudal.formats.tokens import new_token
from caudal.medic.supervision import State
from tests.acceptance.cluster import RealCluster
from tests.harness.cluster_folder import AWAY, laid_out
from tests.harness.waiting import GUARD_SECONDS, until


def with_metrics(
    folder: Path,
    *,
    first: int | None = None,
    behind: int | None = None,
    token: str = "",
    workers: int = 0,
) -> Cluster:
    """One medic on a host that serves metrics from this port on, or from the one so far behind the
    host's; without both, from the usual one."""
    cluster = laid_out(folder, medics=1, workers=workers)
    file = cluster.folder / FILE
    if behind is not None:
        first = cluster.settings.hosts["local"].port + behind
    text = file.read_text().replace(AWAY, "embedded")
    if first is not None:
        text = re.sub(r"\nmetrics = \d+", f"\nmetrics = {first}", text)
    file.write_text(text.replace('metrics_token = ""', f'metrics_token = "{token}"'))
    return Cluster.open(folder)


@contextlib.contextmanager
def running(cluster: Cluster) -> Iterator[RealCluster]:
    """All processes of the cluster, healthy."""
    real = RealCluster(cluster.folder, 0)
    try:
        real.caudal("up")
        yield real
    finally:
        real.caudal("down", check=False)


def figures_of(port: int, token: str | None = None) -> dict[tuple[str, ...], float]:
    """The figures at a port, by name and labels."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=GUARD_SECONDS) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        samples = [one for family in families for one in family.samples]
    return {(one.name, *one.labels.values()): one.value for one in samples}


def test_medics_and_workers_serve_metrics_to_whom_knows_the_token(tmp_path: Path) -> None:
    token = new_token()
    (tmp_path / "metrics.token").write_text(token)
    cluster = with_metrics(tmp_path, behind=160, token="metrics.token", workers=1)
    first = cluster.settings.hosts["local"].metrics
    with running(cluster):
        healthy = ("caudal_medic_processes", State.HEALTHY)
        until(lambda: figures_of(first, token)[healthy] == 2)
        medic, worker = figures_of(first, token), figures_of(first + 10, token)
        for port in (first, first + 10):
            with pytest.raises(urllib.error.HTTPError, match="401") as refused:
                figures_of(port)
            refused.value.close()
    assert medic["caudal_medic_leading",] == 1
    assert medic["caudal_medic_restarts_total", "worker-1"] >= 0
    assert worker["caudal_worker_held",] == 0
    assert worker["caudal_broker_connected",] == 1


def test_medics_and_workers_serve_metrics_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    """On loopback, without a token, as `caudal up` writes it."""
    cluster = with_metrics(tmp_path, workers=1)
    first = cluster.settings.hosts["local"].metrics
    with running(cluster):
        assert figures_of(first)["caudal_medic_leading",] == 1
        assert figures_of(first + 10)["caudal_broker_connected",] == 1


def test_a_medic_refuses_a_weak_token(tmp_path: Path) -> None:
    """Its port is taken, so that a medic that accepts the token ends, too."""
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        cluster = with_metrics(tmp_path, first=taken.getsockname()[1], token="weak")
        (tmp_path / "weak").write_text("guess-me\n")
        heart = cluster.write_heart(cluster.here[0], 1)
        command = cluster.command(cluster.here[0], heart)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == ExitStatus.USAGE
    assert f"the token in {tmp_path / 'weak'} is too weak" in done.stderr
    assert "guess-me" not in done.stderr


def test_a_medic_without_metrics_needs_no_token(tmp_path: Path) -> None:
    """As `caudal up` does not, which starts it."""
    with running(with_metrics(tmp_path, first=0, token="nowhere")) as real:
        assert "medic-1" in real.caudal("status").stdout
