"""The files for Kubernetes, systemd and HAProxy agree with the commands and with each other."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from caudal.cli.program import COMMANDS, load
from caudal.cluster.settings import Host

DEPLOY = Path(__file__).parents[3] / "deploy"


def documents(name: str) -> list[dict[str, Any]]:
    text = (DEPLOY / "kubernetes" / name).read_text()
    return [msgspec.yaml.decode(one) for one in text.split("\n---\n")]


@pytest.mark.parametrize("kind", ["gateway", "worker"])
def test_a_deployment_runs_a_command_that_exists_and_can_be_probed(kind: str) -> None:
    deployment, *others = documents(f"{kind}.yaml")
    pod = deployment["spec"]["template"]
    container = pod["spec"]["containers"][0]
    command = load(next(one for one in COMMANDS if one.name == kind))
    words = [*container["args"][1:], "--store", "s", "--broker", "b"]
    given = command.make_context(kind, words).params
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        asked = container[probe]["httpGet"]
        assert asked["path"] == path
        assert ports[asked["port"]] == given["port" if kind == "gateway" else "metrics_port"]
    labels = pod["metadata"]["labels"]
    budgets = [one for one in others if one["kind"] == "PodDisruptionBudget"]
    assert [one["spec"]["selector"]["matchLabels"] for one in budgets] == [labels]
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["spec"]["volumes"]}
    assert pod["spec"]["securityContext"]["runAsNonRoot"]


def test_workers_are_scaled_by_a_figure_that_gateways_serve() -> None:
    scaler = next(
        one for one in documents("worker.yaml") if one["kind"] == "HorizontalPodAutoscaler"
    )
    metric = scaler["spec"]["metrics"][0]["external"]["metric"]["name"]
    source = (DEPLOY.parent / "src" / "caudal" / "gateway" / "figures.py").read_text()
    assert f'"{metric}"' in source


def test_the_unit_runs_a_command_that_exists() -> None:
    unit = (DEPLOY / "systemd" / "caudal@.service").read_text()
    line = re.search(r"^ExecStart=\S+/caudal up (.*)$", unit, re.MULTILINE)
    assert line is not None
    up = load(next(one for one in COMMANDS if one.name == "up"))
    assert up.make_context("up", line[1].split()).params["foreground"] is True


def test_the_proxy_knows_the_usual_gateways() -> None:
    text = (DEPLOY / "haproxy.cfg").read_text()
    servers = re.findall(r"server \S+ 127\.0\.0\.1:(\d+)", text)
    assert servers == [str(Host().port + number) for number in range(1, Host().gateways + 1)]
