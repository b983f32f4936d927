"""A Docker engine of the tests' own, and the image that is built with it.

The engine has its own folder and socket, so the images, containers and volumes of the machine's own
engine are never met. It is stopped by its pid at the end.
"""

import contextlib
import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.waiting import until

ROOT = Path(__file__).parents[2]
IMAGE, BASE = "caudal:test", "caudal-base:test"
_OFFICIAL, _DEBIAN = "python:3.11-slim-bookworm", "caudal-debian:test"
_FILES = ("-f", "compose.yaml", "-f", "deploy/host-network.yaml")
_KIT = {"DOCKER_BUILDKIT": "1", "COMPOSE_DOCKER_CLI_BUILD": "1"}  # the first compose must be told
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_UNPACKED = ROOT / ".venv" / "compose" / "docker-compose"  # by unpack_compose.sh


@dataclass(frozen=True)
class Docker:
    """The command line of one engine."""

    socket: Path

    @property
    def environment(self) -> Mapping[str, str]:
        system = ":".join(["/usr/bin", "/usr/sbin", "/sbin", os.environ["PATH"]])
        return {**os.environ, "PATH": system, "DOCKER_HOST": f"unix://{self.socket}"}

    def docker(self, *words: str, check: bool = True, **more: str) -> str:
        """Run one command of docker and return its output."""
        return _run(["docker", *words], {**self.environment, **more}, check=check)

    def compose(self, *words: str, check: bool = True, **more: str) -> str:
        """Run one command of compose."""
        return _run(self._composing(*words), {**self.environment, **_KIT, **more}, check=check)

    @contextlib.contextmanager
    def composing(self, *words: str, **more: str) -> Iterator[Iterator[str]]:
        """Run one command of compose that does not end by itself; yield its lines."""
        environment = {**self.environment, **_KIT, **more}
        command = self._composing(*words)
        with subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            try:
                yield (line.rstrip("\n") for line in process.stdout)
            finally:
                process.terminate()

    def _composing(self, *words: str) -> list[str]:
        return [*self._program, *_FILES, *words]

    @functools.cached_property
    def _program(self) -> Sequence[str]:
        """Compose 2 where there is one, installed or unpacked; CAUDAL_TEST_COMPOSE=1: the first."""
        if os.environ.get("CAUDAL_TEST_COMPOSE") != "1":
            if self.docker("compose", "version", "--short", check=False).lstrip("v")[:1].isdigit():
                return ("docker", "compose")
            if _UNPACKED.exists():
                return (str(_UNPACKED),)
        return ("docker-compose",)

    @functools.cached_property
    def compose_version(self) -> str:
        """The version of compose, such as 2.26.1-4."""
        told = _run([*self._program, "version", "--short"], self.environment, check=True)
        return told.strip().removeprefix("v")

    @property
    def has_compose_2(self) -> bool:
        """Whether compose is the present one; Debian 12 packages the first one."""
        return not self.compose_version.startswith("1.")


def _run(command: list[str], environment: Mapping[str, str], *, check: bool) -> str:
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def running_engine(folder: Path) -> Iterator[Docker]:
    """An engine in this folder, or the one that CAUDAL_TEST_ENGINE names (a socket)."""
    if given := os.environ.get("CAUDAL_TEST_ENGINE"):
        yield Docker(Path(given))
        return
    engine = Docker(folder / "docker.sock")
    folder.mkdir(parents=True, exist_ok=True)
    options = {"data-root": "data", "exec-root": "exec", "pidfile": "pid", "host": "docker.sock"}
    places = [f"--{name}={folder / path}" for name, path in options.items()]
    places[-1] = f"--host=unix://{engine.socket}"
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(["dockerd", *places], stderr=log, env=engine.environment)
    try:
        until(lambda: _answers(engine, daemon, folder / "log"), pause_seconds=0.2)
        yield engine
    finally:
        daemon.terminate()
        daemon.wait()
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove an engine's folder. It leaves a mount behind, at which others who clean up stumble."""
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    for place in reversed([line.split()[1] for line in mounts]):
        if Path(place).is_relative_to(folder):
            subprocess.run(["umount", place], check=True)
    shutil.rmtree(folder)


def _answers(engine: Docker, daemon: subprocess.Popen[bytes], log: Path) -> bool:
    assert daemon.poll() is None, log.read_text()[-2000:]
    return "Server" in engine.docker("version", check=False)


def make_base(engine: Docker, folder: Path) -> None:
    """Make the base on which compose.yaml builds its image here: the official one, or one made by
    debootstrap, with this machine's settings of pip and its certificates."""
    if engine.docker("images", "-q", BASE) and os.environ.get("CAUDAL_TEST_KEEP_IMAGE"):
        return
    context = folder / "context"
    (context / "etc/ssl/certs").mkdir(parents=True)
    (context / "etc/pip.conf").write_text(_pip_settings())
    if _CERTIFICATES.exists():
        shutil.copy(_CERTIFICATES, context / "etc/ssl/certs")
    (context / "Dockerfile").write_text(f"FROM {_plain_base(engine, folder)}\nCOPY etc /etc\n")
    engine.docker("build", "-t", BASE, str(context))


def _plain_base(engine: Docker, folder: Path) -> str:
    with contextlib.suppress(AssertionError):
        engine.docker("pull", "-q", _OFFICIAL)
        return _OFFICIAL
    if not engine.docker("images", "-q", _DEBIAN):
        system = folder / "base"
        packages = "--include=python3,python3-venv,ca-certificates"
        make = ["debootstrap", "--variant=minbase", packages, "bookworm", str(system)]
        _run(make, engine.environment, check=True)
        dropped = ("dev", "var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man")
        excluded = [f"--exclude=./{one}" for one in (*dropped, "usr/share/locale")]
        whole = folder / "base.tar"
        _run(["tar", "-C", str(system), *excluded, "-cf", str(whole), "."], os.environ, check=True)
        engine.docker("import", str(whole), _DEBIAN)
        shutil.rmtree(system)
        whole.unlink()
    return _DEBIAN


def _pip_settings() -> str:
    shown = _run(["python3", "-m", "pip", "config", "list"], os.environ, check=False)
    lines = [
        f"{name.removeprefix('global.')} = {value.strip(chr(39))}"
        for name, _, value in (line.partition("=") for line in shown.splitlines())
        if name.startswith("global.") and "file:" not in value and not value.startswith("'/")
    ]
    if _CERTIFICATES.exists():
        lines.append(f"cert = {_CERTIFICATES}")
    return "\n".join(["[global]", "timeout = 180", *lines, ""])
