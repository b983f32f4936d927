"""The extras of pyproject.toml are those that messages name."""

import re
import tomllib
from pathlib import Path

import pytest

from caudal.cli.main import main
from caudal.cli.program import COMMANDS
from caudal.cli.status import ExitStatus
from caudal.extras import EXTRAS

ROOT = Path(__file__).parents[2]


def test_both_lists_of_extras_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {
        extra: {re.split(r"[<>=;\[ ]", one)[0].replace("-", "_") for one in packages}
        for extra, packages in project["optional-dependencies"].items()
    }
    assert listed == {extra: set(packages) for extra, packages in EXTRAS.items()}


def test_commands_name_extras_that_exist() -> None:
    assert {one.extra for one in COMMANDS} - {""} <= EXTRAS.keys()


def test_a_missing_package_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["status"]) == ExitStatus.MISSING_PACKAGE
    told = capsys.readouterr().err
    assert told.startswith("caudal: caudal status needs aio_pika, httpx,")
    assert told.endswith("pip install 'caudal[cluster]'\n")
