"""The page in the package is the one that the sources in web/ give, byte for byte."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.seaweed import refuse

ROOT = Path(__file__).parents[2]
WEB, PAGE = ROOT / "web", ROOT / "src" / "caudal" / "gateway" / "page"


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None or not (WEB / "node_modules" / "esbuild").exists():
        refuse("node or the packages of web/ are missing: npm install --no-save in web/")
    return str(found)


def test_the_bundle_is_built_from_these_sources(node: str, tmp_path: Path) -> None:
    subprocess.run([node, "build.mjs", str(tmp_path / "page")], cwd=WEB, check=True)
    built = {one.name: one.read_bytes() for one in (tmp_path / "page").iterdir()}
    kept = {one.name: one.read_bytes() for one in PAGE.iterdir()}
    assert sorted(kept) == sorted(built)
    assert [name for name in kept if kept[name] != built[name]] == [], "run `make web`"


def test_the_lock_names_no_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text())
    assert [name for name, one in lock["packages"].items() if "resolved" in one] == []
