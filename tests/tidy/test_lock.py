"""The locked environment is whole, and the same wherever packages come from."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def test_the_lock_names_no_place() -> None:
    assert "://" not in LOCK
    assert " @ " not in LOCK


def test_everything_that_is_asked_for_is_locked_with_hashes() -> None:
    groups = PROJECT["dependency-groups"]
    asked = [*PROJECT["project"]["dependencies"], *groups["dev"], *groups["bench"]]
    names = {match[0].lower().replace("_", "-") for one in asked if (match := _NAME.match(one))}
    locked = re.findall(r"^([a-z0-9._-]+)==[^\n]*\n    --hash=sha256:", LOCK, re.MULTILINE)
    assert names <= set(locked), names - set(locked)


def test_the_locks_of_the_image_agree_with_that_of_the_tests() -> None:
    """What both have is the same version; the build's group is what the build asks for."""
    assert PROJECT["dependency-groups"]["build"] == PROJECT["build-system"]["requires"]
    tested = set(_pins(LOCK))
    names = {name for name, _ in tested}
    for file in ("requirements.lock", "build.lock"):
        lock = (ROOT / "deploy" / file).read_text(encoding="utf-8")
        assert "://" not in lock
        shared = {pin for pin in _pins(lock) if pin[0] in names}
        assert shared
        assert shared <= tested


def _pins(lock: str) -> list[tuple[str, str]]:
    return re.findall(r"^([a-z0-9._-]+)==([^ ;\\]+)", lock, re.MULTILINE)
