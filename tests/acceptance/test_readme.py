"""What a new user does: install the wheel into an empty environment, then follow README.md."""

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from caudal.cli.status import ExitStatus
from tests.acceptance.readme_blocks import Block, blocks

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_WHEEL_BYTES = 5_000_000


def done(command: list[str | Path], **more: object) -> str:
    """Run a command that must succeed; return what it printed."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return str(ran.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done([UV, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT])
    (built,) = folder.glob("*.whl")
    return built


def installed(wheel: Path, folder: Path, extras: str, *more: str) -> Path:
    """An environment that holds the wheel and what it asks for, in the locked versions."""
    done([UV, "venv", "--quiet", "--python", sys.executable, folder])
    python = folder / "bin" / "python"
    asked = [f"caudal{extras} @ {wheel.as_uri()}", *more]
    locked = ["--constraint", str(ROOT / "requirements.lock")]
    done([UV, "pip", "install", "--quiet", *locked, "--python", python, *asked])
    return folder


def surroundings(environment: Path, home: Path) -> dict[str, str]:
    """The variables of a user who has nothing but this environment."""
    path = f"{environment / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    empty = tmp_path / "empty"
    empty.mkdir()
    return empty


@pytest.fixture
def user(wheel: Path, tmp_path: Path, home: Path, folder: Path) -> Iterator[dict[str, str]]:
    needed = sorted({package for block in blocks(PAGE) for package in block.needs})
    environment = installed(wheel, tmp_path / "environment", "[cluster,s3]", *needed)
    variables = surroundings(environment, home)
    yield variables
    down = ["caudal", "down", "--purge"]
    subprocess.run(down, cwd=folder, env=variables, check=False, capture_output=True)


def test_every_command_of_the_readme_works_in_order(user: dict[str, str], folder: Path) -> None:
    ran = 0
    for block in blocks(PAGE):
        if not block.not_run:
            run(block, user, folder)
            ran += 1
    assert ran >= 4


def run(block: Block, user: dict[str, str], folder: Path) -> None:
    if block.first:
        done(["sh", "-euc", "\n".join(block.first)], cwd=folder, env=user)
    command = ["sh", "-euxc"] if block.language == "sh" else ["python", "-c"]
    done([*command, block.text], cwd=folder, env=user)


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without extras."""
    return installed(wheel, tmp_path_factory.mktemp("plain") / "environment", "")


def test_a_plain_install_answers(plain: Path, home: Path, folder: Path) -> None:
    asked: list[str | Path] = ["caudal", "sql", "SELECT 6 * 7 AS x", "--format", "csv"]
    assert done(asked, cwd=folder, env=surroundings(plain, home)) == "x\n42\n"


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("caudal up", "cluster"),
        ("caudal sql 'SELECT 1' --gateway http://127.0.0.1:1", "cluster"),
        ("caudal series status bcra_infomondia --store s3://bucket/x", "s3"),
    ],
)
def test_a_plain_install_says_which_extra_is_missing(
    command: str, extra: str, plain: Path, home: Path, folder: Path
) -> None:
    ran = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env=surroundings(plain, home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == ExitStatus.MISSING_PACKAGE, ran.stderr
    assert ran.stderr.count("\n") == 1
    assert f"pip install 'caudal[{extra}]'" in ran.stderr


def test_a_read_only_install_of_somebody_without_a_home_answers(plain: Path, folder: Path) -> None:
    (folder / "x.csv").write_text("a\ngood\n")
    asked = ["caudal", "sql", "SELECT sentiment(a) AS s FROM 'x.csv'", "--format", "csv"]
    user = surroundings(plain, Path("/dev/null/nobody"))
    assert done(read_only(plain, asked), cwd=folder, env=user) == "s\n0.7\n"


def read_only(folder: Path, command: list[str]) -> list[str | Path]:
    """The command, run where `folder` cannot be written. Needs root: it mounts in a namespace."""
    if os.geteuid() != 0:
        pytest.skip(f"only root can make {folder} read-only for a test")
    mounted = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mounted, folder, *command]


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_WHEEL_BYTES


def test_classifiers_name_only_the_python_that_runs_the_tests() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [one.split(" :: ")[-1] for one in project["classifiers"] if ":: Python ::" in one]
    assert named == ["{}.{}".format(*sys.version_info)]
