"""What the simulation runs is production code: no branches for it there, no subclasses here."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("jobs", "broker", "formats", "store", "duck", "worker")
PRODUCTION = sorted(path for room in ROOMS for path in (ROOT / "src/caudal" / room).rglob("*.py"))
SIMULATION = sorted((ROOT / "tests/simulation").glob("*.py"))
BREAKS_ON_PURPOSE = {"sabotage.py", "test_sabotage.py", "try_sabotage.py", "test_simulation.py"}
TO_BE_SUBCLASSED = {"Listener", "Store"}  # a port, and one that is told what happens
LOOPS = {"loops", "Gateway", "Janitor", "Reconciler", "Client"}
_WORDS = re.compile(r"simulat|greenlet|\bmock|monkeypatch|in_test|testing", re.IGNORECASE)


@pytest.mark.parametrize("path", PRODUCTION, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_production_code_does_not_know_that_it_is_simulated(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {
        *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)),
        *(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)),
        *(alias.name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
          for alias in node.names),
    }  # fmt: skip
    assert [name for name in sorted(names) if _WORDS.search(name)] == []


@pytest.mark.parametrize(
    "path",
    [path for path in SIMULATION if path.name not in BREAKS_ON_PURPOSE],
    ids=lambda path: path.name,
)
def test_the_simulation_replaces_nothing_of_what_it_runs(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("caudal")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base) for base in node.bases} - TO_BE_SUBCLASSED
            assert not bases & ours, node.name
        if isinstance(node, ast.Name):
            assert node.id not in {"setattr", "mock", "monkeypatch"}
        if isinstance(node, ast.Assign):
            replaced = {ast.unparse(one).split(".")[0] for one in node.targets if _within(one)}
            assert not replaced & ours, ast.unparse(node)


def test_the_simulation_runs_the_loops_of_the_processes() -> None:
    imported = {
        alias.name
        for path in SIMULATION
        if path.name not in BREAKS_ON_PURPOSE
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("caudal.jobs")
        for alias in node.names
    }
    assert imported >= LOOPS


def _within(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute)
