"""The files for Kubernetes, systemd and HAProxy agree with the commands and with each other."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from caudal.cli.program import COMMANDS, load
from caudal.cluster.settings import Host
from caudal.gateway.process import GatewaySettings
from caudal.store.open_store import folder_of, open_store
from caudal.store.s3 import S3Store
from caudal.version import __version__
from caudal.worker.settings import WorkerSettings

DEPLOY = Path(__file__).parents[3] / "deploy"
HOWTO = DEPLOY.parent / "docs" / "howto"
PAGE = (HOWTO / "kubernetes.md").read_text()
UNIT = (DEPLOY / "systemd" / "caudal@.service").read_text()


def created(name: str) -> set[str]:
    """The keys of a secret, from the command that the page tells to run."""
    command = re.search(rf"create secret generic {name}(?![\w-])((?:.*\\\n)*.*)", PAGE)
    assert command is not None, name
    literals = re.findall(r"--from-literal=(\w+)=", command[1])
    return {*literals, *re.findall(r"--from-file=(\S+)", command[1])}


CREATED = {name: created(name) for name in ("caudal", "caudal-tokens", "caudal-metrics")}


def documents(name: str) -> list[dict[str, Any]]:
    text = (DEPLOY / "kubernetes" / name).read_text()
    return [msgspec.yaml.decode(one) for one in text.split("\n---\n")]


def pod_of(kind: str) -> Any:
    return documents(f"{kind}.yaml")[0]["spec"]["template"]["spec"]


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


def test_a_gateway_leaves_the_service_before_it_ends_and_has_time_for_both() -> None:
    pod = pod_of("gateway")
    command, seconds = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    own = GatewaySettings("g").grace_seconds
    assert 0 < int(seconds) < pod["terminationGracePeriodSeconds"] - own


def test_a_worker_is_asked_to_end_at_once_and_has_time_for_it() -> None:
    """No service leads to it, and while it waited it would take more tasks."""
    pod = pod_of("worker")
    assert "lifecycle" not in pod["containers"][0]
    own = WorkerSettings("w").grace_seconds
    assert pod["terminationGracePeriodSeconds"] > own


@pytest.mark.parametrize("kind", ["gateway", "worker"])
def test_the_store_is_a_bucket_and_the_broker_is_secret(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command takes both from its environment."""
    container = pod_of(kind)["containers"][0]
    assert "env" not in container
    [settings] = documents("settings.yaml")
    assert container["envFrom"] == [
        {"configMapRef": {"name": settings["metadata"]["name"]}},
        {"secretRef": {"name": "caudal"}},
    ]
    assert CREATED["caudal"] == {"CAUDAL_BROKER", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    assert not CREATED["caudal"] & set(settings["data"])
    for name, value in settings["data"].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CAUDAL_BROKER", "amqp://secret/")
    command = load(next(one for one in COMMANDS if one.name == kind))
    given = command.make_context(kind, container["args"][1:]).params
    assert given["broker"] == "amqp://secret/"
    assert folder_of(given["store"]) is None
    assert isinstance(open_store(given["store"]), S3Store)


@pytest.mark.parametrize(("kind", "option"), [("gateway", "token"), ("worker", "metrics-token")])
def test_tokens_are_files_of_secrets_that_only_the_group_may_read(kind: str, option: str) -> None:
    pod = pod_of(kind)
    container = pod["containers"][0]
    words = dict(word.split("=", 1) for word in container["args"][1:])
    file = Path(words[f"--{option}-file"])
    [mount] = [one for one in container["volumeMounts"] if one["mountPath"] == str(file.parent)]
    assert mount["readOnly"]
    [volume] = [one for one in pod["volumes"] if one["name"] == mount["name"]]
    assert file.name in CREATED[volume["secret"]["secretName"]]
    assert volume["secret"]["defaultMode"] == 0o440


def test_the_image_has_the_version_that_this_clone_becomes() -> None:
    """Whoever applies the files builds the image from the same clone."""
    [kustomization] = documents("kustomization.yaml")
    [image] = kustomization["images"]
    assert image["newTag"] == re.sub(r"\.dev\d+$", "", __version__)


def test_the_autoscaler_sets_the_number_of_workers_by_a_figure_of_gateways() -> None:
    deployment, *others = documents("worker.yaml")
    scaler = next(one["spec"] for one in others if one["kind"] == "HorizontalPodAutoscaler")
    target = {"apiVersion": deployment["apiVersion"], "kind": "Deployment", "name": "worker"}
    assert scaler["scaleTargetRef"] == target
    assert deployment["metadata"]["name"] == "worker"
    assert "replicas" not in deployment["spec"]  # each `kubectl apply` would undo its decision
    [metric] = scaler["metrics"]
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "4"}
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 40)
    assert "four each, from 2 to 40" in PAGE
    name = metric["external"]["metric"]["name"]
    assert f"name: {{ as: {name} }}" in PAGE
    source = (DEPLOY.parent / "src" / "caudal" / "gateway" / "figures.py").read_text()
    assert f'"{name}"' in source


def test_the_unit_runs_a_command_that_exists() -> None:
    line = re.search(r"^ExecStart=\S+/caudal up (.*)$", UNIT, re.MULTILINE)
    assert line is not None
    up = load(next(one for one in COMMANDS if one.name == "up"))
    assert up.make_context("up", line[1].split()).params["foreground"] is True


def test_a_worker_that_the_kernel_kills_for_its_memory_takes_nobody_with_it() -> None:
    """By systemd's default the whole unit would stop: every process of the host."""
    assert "\nOOMPolicy=continue\n" in UNIT


def test_the_page_shows_how_a_store_elsewhere_becomes_writable_for_the_unit() -> None:
    assert "\nProtectSystem=strict\n" in UNIT
    assert "\nReadWritePaths=/var/lib/caudal\n" in UNIT
    drop_in = "/etc/systemd/system/caudal@.service.d/"
    assert drop_in in UNIT
    page = (HOWTO / "several-machines.md").read_text()
    assert drop_in in page
    assert re.search(r"^\[Service\]\nReadWritePaths=/(?!var/lib/caudal)\S+$", page, re.MULTILINE)


def test_a_node_of_rabbitmq_that_was_cut_off_is_noticed_in_seconds() -> None:
    """By RabbitMQ's default it takes a minute, in which no queue of that node goes on."""
    lines = (DEPLOY / "rabbitmq.conf").read_text().splitlines()
    assert "net_ticktime = 10" in lines
    assert "cluster_partition_handling = pause_minority" in lines


def test_the_proxy_knows_the_usual_gateways() -> None:
    text = (DEPLOY / "haproxy.cfg").read_text()
    servers = re.findall(r"server \S+ 127\.0\.0\.1:(\d+)", text)
    assert servers == [str(Host().port + number) for number in range(1, Host().gateways + 1)]
