"""`docker compose up -d --build`, work, kills, scaling and `down` on a real engine."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from caudal.medic.containers import seconds_of
from tests.acceptance.cluster import CAUDAL
from tests.containers.composed import NAME, Composed, composed
from tests.containers.engine import IMAGE, Docker, make_base, running_engine
from tests.harness.waiting import until

MEMBERS = {"gateway-1", "gateway-2", "worker-1", "worker-2", "medic-1", "medic-2", "medic-3"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docker]:
    folder = tmp_path_factory.mktemp("engine")
    with running_engine(folder / "docker") as found:
        print(f"compose {found.compose_version}")
        make_base(found, folder)
        yield found


@pytest.fixture(scope="module")
def cluster(engine: Docker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    with composed(engine, tmp_path_factory.mktemp("composed")) as found:
        found.all_healthy()
        yield found


def caudal(*words: str) -> str:
    return subprocess.run([*CAUDAL, *words], capture_output=True, text=True, check=True).stdout


def fill(cluster: Composed, app: str) -> None:
    """Make the data of an application, and remove earlier results."""
    for folder in (cluster.folder / "data", cluster.folder / "results"):
        for path in folder.iterdir():
            path.unlink()
    caudal("generate", app, "--scale", "0.002", "--out", str(cluster.folder / "data"))
    subprocess.run(["chmod", "-R", "a+rX", str(cluster.folder / "data")], check=True)


def in_image(engine: Docker, *words: str) -> str:
    return engine.docker("run", "--rm", "--entrypoint", words[0], IMAGE, *words[1:])


def healths(cluster: Composed) -> dict[str, str]:
    """What `docker compose ps` says of each container."""
    return {one: cluster.inspect(one)["State"]["Health"]["Status"] for one in MEMBERS}


def exists(cluster: Composed, name: str) -> bool:
    return f"{NAME}-{name}" in cluster.engine.docker("ps", "-a", "--format", "{{.Names}}")


def test_the_image_is_small_and_has_neither_root_nor_compilers(cluster: Composed) -> None:
    engine = cluster.engine
    size = int(engine.docker("image", "inspect", "--format", "{{.Size}}", IMAGE))
    print(f"image: {size / 1e6:.0f} MB")
    assert size < 700e6
    assert in_image(engine, "id", "-u").strip() == "10001"
    found = "import importlib.util as u; print([n for n in ('numba', 'pip') if u.find_spec(n)])"
    assert in_image(engine, "python", "-c", found).strip() == "[]"
    script = "for one in gcc cc pip pip3; do command -v $one; done; echo none"
    assert in_image(engine, "sh", "-c", script).strip() == "none"
    names = ("pip", "pip-*", "setuptools", "setuptools-*", "ensurepip")
    either = [word for name in names for word in ("-o", "-name", name)][1:]
    assert in_image(engine, "find", "/usr", "-path", "*python*", "(", *either, ")") == ""


def test_all_containers_become_healthy_and_belong_to_one_user(cluster: Composed) -> None:
    assert set(cluster.all_healthy()) == MEMBERS
    until(lambda: "starting" not in healths(cluster).values(), pause_seconds=0.5)
    assert healths(cluster) == dict.fromkeys(MEMBERS, "healthy")
    owners = cluster.compose("exec", "-T", "worker-1", "find", "/cluster", "!", "-user", "caudal")
    assert owners == ""


def test_idle_medics_keep_their_leader_and_cost_little(cluster: Composed) -> None:
    """They asked the engine so much that they were late, and elected a leader every few seconds."""
    cluster.all_healthy()
    medics = sorted(one for one in MEMBERS if one.startswith("medic-"))
    term, began = cluster.view()["term"], time.monotonic()
    before = {one: cluster.cpu_seconds(one) for one in medics}
    time.sleep(20)
    seconds = time.monotonic() - began
    shares = {one: (cluster.cpu_seconds(one) - before[one]) / seconds for one in medics}
    print(f"idle medics, in cores: {shares}")
    assert sum(shares.values()) / len(shares) < 0.1
    assert cluster.view()["term"] == term


@pytest.mark.parametrize("app", ["books", "movies"])
def test_a_client_answers_over_data_and_leaves_results_to_their_owner(
    cluster: Composed, app: str
) -> None:
    fill(cluster, app)
    cluster.client(app, "--format", "json")
    expected = cluster.folder / "expected"
    shutil.rmtree(expected, ignore_errors=True)
    caudal(
        "run",
        app,
        "--data",
        str(cluster.folder / "data"),
        "--format",
        "json",
        "--out",
        str(expected),
    )
    answers = {path.name: path for path in (cluster.folder / "results").iterdir()}
    assert set(answers) == {path.name for path in expected.iterdir()}
    for name, path in answers.items():
        assert json.loads(path.read_bytes()) == json.loads((expected / name).read_bytes()), name
        assert path.stat().st_uid == 4321


@pytest.mark.parametrize("way", ["kill", "pause"])
@pytest.mark.parametrize("name", ["worker-1", "gateway-2", "medic-3", "medic-1"])
def test_one_fault_costs_one_restart(cluster: Composed, name: str, way: str) -> None:
    before = cluster.all_healthy()
    cluster.docker(way, name)
    cluster.settled(lambda told: told[name]["incarnation"] > before[name]["incarnation"])
    after = cluster.all_healthy()
    restarts = {one: after[one]["incarnation"] - before[one]["incarnation"] for one in MEMBERS}
    assert restarts == {one: int(one == name) for one in MEMBERS}


def test_a_container_that_a_person_starts_anew_is_a_new_incarnation(cluster: Composed) -> None:
    before = cluster.all_healthy()
    cluster.docker("restart", "worker-2")
    after = cluster.settled(
        lambda told: told["worker-2"]["incarnation"] > before["worker-2"]["incarnation"]
    )
    assert after["worker-2"]["incarnation"] == before["worker-2"]["incarnation"] + 1


def test_scale_creates_and_removes_containers(cluster: Composed) -> None:
    cluster.admin("scale", "worker=3")
    cluster.settled(lambda told: told.get("worker-3", {}).get("state") == "healthy")
    assert cluster.inspect("worker-3")["Config"]["Cmd"] == ["member", "worker-3"]
    cluster.admin("scale", "worker=2")
    until(lambda: not exists(cluster, "worker-3"), pause_seconds=0.5)
    cluster.settled(lambda told: set(told) == MEMBERS)  # each medic reads the change by itself
    cluster.all_healthy()


@contextlib.contextmanager
def three_workers(cluster: Composed) -> Iterator[None]:
    """The third one is made by medics: compose does not know it."""
    cluster.admin("scale", "worker=3")
    cluster.settled(lambda told: told.get("worker-3", {}).get("state") == "healthy")
    try:
        yield
    finally:
        cluster.admin("scale", "worker=2")
        until(lambda: not exists(cluster, "worker-3"), pause_seconds=0.5)


def all_newer(cluster: Composed, before: dict[str, Any]) -> dict[str, Any]:
    return cluster.settled(
        lambda told: all(
            one["state"] == "healthy" and one["incarnation"] > before[name]["incarnation"]
            for name, one in told.items()
        )
    )


def labelled(engine: Docker, folder: Path, tag: str) -> str:
    """Make another image of the tests' one, and return its id."""
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"FROM {IMAGE}\nLABEL test.tag={tag}\n")
    engine.docker("build", "-t", tag, str(folder))
    return engine.docker("image", "inspect", "--format", "{{.Id}}", tag).strip()


def streamed(cluster: Composed, is_over: threading.Event) -> list[tuple[float, float]]:
    """Run one client after the other until it is over; return when each began and ended."""
    found = []
    while not is_over.is_set():
        began = time.time()
        cluster.client("movies", "--format", "json")
        found.append((began, time.time()))
    return found


def started(cluster: Composed, name: str) -> float:
    return seconds_of(cluster.inspect(name)["State"]["StartedAt"])


def test_a_rolling_restart_moves_every_container_to_another_image_while_jobs_run(
    cluster: Composed, tmp_path: Path
) -> None:
    fill(cluster, "movies")
    tag = "caudal:next"
    new = labelled(cluster.engine, tmp_path / "context", tag)
    old = cluster.inspect("worker-1")["Image"]
    with three_workers(cluster), ThreadPoolExecutor(1) as pool:
        for image, wanted in ((tag, new), (IMAGE, old)):  # forth, and back
            before = cluster.all_healthy()
            is_over = threading.Event()
            jobs = pool.submit(streamed, cluster, is_over)
            try:
                dataclasses.replace(cluster, image=image).admin("restart", "--rolling")
            finally:
                is_over.set()
            returned = time.time()
            after = cluster.all_healthy()
            mixed = min(started(cluster, one) for one in after if one.startswith("worker-"))
            told = [(began - mixed, ended - mixed) for began, ended in jobs.result()]
            print(f"jobs, in seconds after the first worker was new: {told}")
            assert any(began > 0 and ended < returned - mixed for began, ended in told)
            assert {one: cluster.inspect(one)["Image"] for one in after} == dict.fromkeys(
                (*MEMBERS, "worker-3"), wanted
            )
            labels = {cluster.inspect(one)["Config"]["Labels"].get("test.tag") for one in after}
            assert labels == {tag if image == tag else None}
            for name, one in after.items():
                assert one["incarnation"] == before[name]["incarnation"] + 1, name
    assert {path.stat().st_uid for path in (cluster.folder / "results").iterdir()} == {4321}


def test_compose_replaces_all_containers_and_medics_do_not_interfere(
    cluster: Composed, tmp_path: Path
) -> None:
    if not cluster.engine.has_compose_2:
        pytest.skip(
            f"compose {cluster.engine.compose_version} renames a container only after it has "
            "stopped it: compose 2 is missing, see tests/containers/unpack_compose.sh"
        )
    labelled(cluster.engine, tmp_path / "context", "caudal:next")
    for image in ("caudal:next", IMAGE):
        before = cluster.all_healthy()
        dataclasses.replace(cluster, image=image).compose("up", "-d")
        after = all_newer(cluster, before)
        assert {cluster.inspect(name)["Config"]["Image"] for name in after} == {image}


def test_a_lost_secret_is_told_and_not_replaced_while_containers_run(cluster: Composed) -> None:
    secret = cluster.volume() / "secret"
    kept = secret.rename(cluster.volume() / "kept")
    try:
        words = cluster.refusal("run", "--rm", "-T", "init")
        assert "secret is missing, but running processes use it: restore it" in words
        assert "docker compose down" in words
        for command in ("status", "doctor"):
            words = cluster.refusal("run", "--rm", "-T", "admin", command)
            assert "restore it, or stop the processes with `docker compose down`" in words
        assert not secret.exists()
    finally:
        kept.rename(secret)
    cluster.all_healthy()


def test_the_store_is_fixed_while_containers_run(cluster: Composed) -> None:
    path = cluster.volume() / "cluster.toml"
    text = path.read_text()
    try:
        path.write_text(text.replace('store = "store"', 'store = "other"'))
        words = cluster.refusal("run", "--rm", "-T", "admin", "doctor")
        assert 'says store = "other", but the running processes use "store"' in words
        assert "stop the cluster first (`docker compose down`)" in words
        assert "docker compose down" in cluster.refusal("run", "--rm", "-T", "init")
        before = cluster.all_healthy()
        cluster.docker("kill", "worker-1")
        cluster.settled(
            lambda told: told["worker-1"]["incarnation"] > before["worker-1"]["incarnation"]
        )
        cluster.all_healthy()
        assert not (cluster.volume() / "other").exists()
    finally:
        path.write_text(text)


def test_the_doctor_misses_medics(cluster: Composed) -> None:
    medics = sorted(one for one in MEMBERS if one.startswith("medic-"))
    cluster.compose("stop", *medics)
    words = cluster.refusal("run", "--rm", "-T", "admin", "doctor")
    cluster.compose("up", "-d", "--no-recreate")
    assert "no medic answers" in words
    assert "run `docker compose up -d`" in words
    cluster.all_healthy()


def test_a_folder_of_results_that_docker_made_is_refused(cluster: Composed) -> None:
    data, results = cluster.folder / "mine", cluster.folder / "missing"
    data.mkdir()
    os.chown(data, 4321, 4321)
    other = dataclasses.replace(cluster, data=data, results=results)
    words = other.refusal("run", "--rm", "-T", "client", "books")
    assert "belongs to root, as Docker makes one that is missing" in words
    assert "sudo rmdir results" in words
    assert list(results.iterdir()) == []


def ready_again(cluster: Composed, name: str) -> None:
    """Kill a container and wait until a medic has started it."""
    before = cluster.all_healthy()
    cluster.docker("kill", name)
    cluster.settled(lambda told: told[name]["incarnation"] > before[name]["incarnation"])
    cluster.all_healthy()


def test_logs_and_doctor_know_containers(cluster: Composed) -> None:
    for _ in range(3):
        ready_again(cluster, "worker-1")  # each says so in its log
    lines = cluster.admin("logs", "worker-1", "-n", "3").splitlines()
    assert len(lines) == 3
    assert all(json.loads(line)["process"] == "worker-1" for line in lines)
    assert "ok  containers: all 7 exist" in cluster.admin("doctor")


def test_a_log_is_followed_when_its_container_is_started_anew(cluster: Composed) -> None:
    cluster.all_healthy()
    with cluster.following("worker-1") as lines:
        first = json.loads(next(lines))
        ready_again(cluster, "worker-1")
        later = next(told for line in lines if (told := json.loads(line))["event"] == "ready")
        assert later["time"] > first["time"]
    assert "follows-" not in cluster.engine.docker("ps", "-a", "--format", "{{.Names}}")


def test_chaos_reports_recoveries_of_containers(cluster: Composed) -> None:
    told = cluster.admin("chaos", "--kills", "6", "--freeze", "--seed", "7")
    print(told)
    assert "left dead: none" in told


def test_down_lets_everybody_end_and_leaves_nothing(cluster: Composed) -> None:
    cluster.all_healthy()
    cluster.compose("stop")
    codes = {name: cluster.inspect(name)["State"]["ExitCode"] for name in MEMBERS}
    assert codes == dict.fromkeys(MEMBERS, 0)
    cluster.compose("down", "-v")
    engine = cluster.engine
    assert NAME not in engine.docker("ps", "-a", "--format", "{{.Names}}")
    assert NAME not in engine.docker("volume", "ls", "-q")
    assert os.listdir(cluster.folder / "results")  # noqa: PTH208 - what the client made stays
