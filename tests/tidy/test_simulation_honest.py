"""What the simulation runs is production code: no branches for it there, no subclasses here."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("jobs", "broker", "formats", "store", "duck", "worker")
PRODUCTION = sorted(path for room in ROOMS for path in (ROOT / "src/caudal" / room).rglob("*.py"))
SIMULATION = sorted((ROOT / "tests/simulation").glob("*.py"))
BREAKS_ON_PURPOSE = {
    "dataset_sabotage.py",
    "sabotage.py",
    "test_sabotage.py",
    "try_sabotage.py",
    "test_simulation.py",
}
TO_BE_SUBCLASSED = {"Listener", "Store"}  # a port, and one that is told what happens
LOOPS = {"loops", "JobService", "Janitor", "Reconciler", "Uploader"}
_WORDS = re.compile(r"simulat|greenlet|\bmock|monkeypatch|in_test|testing", re.IGNORECASE)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))


def test_production_code_does_not_know_that_it_is_simulated() -> None:
    told = {str(path): names for path in PRODUCTION if (names := telling_names(parsed(path)))}
    assert told == {}


def telling_names(tree: ast.Module) -> list[str]:
    names = {
        *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)),
        *(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)),
        *(alias.name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
          for alias in node.names),
    }  # fmt: skip
    return [name for name in sorted(names) if _WORDS.search(name)]


def test_the_simulation_replaces_nothing_of_what_it_runs() -> None:
    honest = [path for path in SIMULATION if path.name not in BREAKS_ON_PURPOSE]
    replaced = {path.name: found for path in honest if (found := list(replacing(parsed(path))))}
    assert replaced == {}


def replacing(tree: ast.Module) -> Iterator[str]:
    """The classes, names and assignments that put something in the place of production code."""
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("caudal")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base) for base in node.bases} - TO_BE_SUBCLASSED
            if bases & ours:
                yield node.name
        if isinstance(node, ast.Name) and node.id in {"setattr", "mock", "monkeypatch"}:
            yield node.id
        if isinstance(node, ast.Assign):
            targets = {ast.unparse(one).split(".")[0] for one in node.targets if _within(one)}
            if targets & ours:
                yield ast.unparse(node)


def test_the_simulation_runs_the_loops_of_the_processes() -> None:
    imported = {
        alias.name
        for path in SIMULATION
        if path.name not in BREAKS_ON_PURPOSE
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("caudal.jobs")
        for alias in node.names
    }
    assert imported >= LOOPS


def _within(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute)
