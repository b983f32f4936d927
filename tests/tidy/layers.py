"""The rooms of the source tree and who may import whom. Tests and pictures read the same data."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "caudal"

# From the bottom up. A module may import from its own room and from rooms earlier in this list.
LAYERS = [
    ("decoding", "errors", "extras", "late", "model", "sizes", "toml", "user_cache", "version"),
    ("sql",),
    ("formats",),
    ("kernels", "store", "broker", "process"),
    ("results", "run_options"),
    ("files",),
    ("datasets",),
    ("jobs",),
    ("duck",),
    ("embedded",),
    ("worker",),
    ("gateway", "local", "spark"),
    ("medic", "cluster"),
    ("application", "generate", "series"),
    ("client",),
    ("api", "dataset_api"),
    ("cli", "__main__"),
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
MODULES = sorted(path for path in ROOT.rglob("*.py") if "apps" not in path.relative_to(ROOT).parts)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(name for name in found if name.split(".")[0] == "caudal")


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def room_imports() -> dict[str, set[str]]:
    """Return which rooms each room imports, as the code stands."""
    found: dict[str, set[str]] = {name: set() for name in LEVEL}
    for path in MODULES:
        here = room(module_name(path))
        for name in imports(path) if here else ():
            if room(name) in LEVEL and room(name) != here:
                found[here].add(room(name))
    return found


def without_shortcuts(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return a graph of fewer edges in which the same rooms can be reached from each."""
    kept = {source: set(targets) for source, targets in graph.items()}
    for source in sorted(kept):
        for target in sorted(kept[source]):
            kept[source].discard(target)
            if target not in _reachable(kept, source):
                kept[source].add(target)
    return kept


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    frontier = [start]
    while frontier:
        new = graph.get(frontier.pop(), set()) - found
        found |= new
        frontier += sorted(new)
    return found
