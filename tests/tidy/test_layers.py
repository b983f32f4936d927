"""Imports go one way, and never in a circle."""

import ast
from pathlib import Path

from tests.tidy.layers import LEVEL, MODULES, ROOT, imports, module_name, room


def test_a_module_imports_only_from_rooms_below() -> None:
    assert [wrong for path in MODULES for wrong in imports_from_above(path)] == []


def imports_from_above(path: Path) -> list[str]:
    module = module_name(path)
    here = room(module)
    if not here:
        return []  # caudal/__init__.py re-exports
    rooms = {name: room(name) for name in imports(path)}
    return [
        f"{module} imports {name}"
        for name, there in rooms.items()
        if there in LEVEL and there != here and LEVEL[there] > LEVEL[here]
    ]


def test_every_room_has_its_place() -> None:
    rooms = {room(module_name(path)) for path in MODULES} - {""}
    assert rooms == set(LEVEL)


def test_no_module_imports_itself_through_others() -> None:
    names = {module_name(path): path for path in MODULES}
    graph = {
        name: {other for other in imports(path) if other in names and other != name}
        for name, path in names.items()
        if path.name != "__init__.py"
    }
    settled: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name in settled or name not in graph:
            return
        for other in graph[name]:
            visit(other, (*trail, name))
        settled.add(name)

    for name in graph:
        visit(name, ())


def test_packages_hold_no_code_in_their_init() -> None:
    for path in ROOT.rglob("__init__.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_export = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in node.body if for_types and isinstance(node, ast.If) else [node]:
                is_import = isinstance(inner, ast.Import | ast.ImportFrom)
                assert is_docstring or is_export or is_import, path


def test_no_room_without_a_name() -> None:
    for path in MODULES:
        assert path.stem not in {"utils", "util", "helpers", "common", "misc", "base", "manager"}


def test_only_one_room_imports_duckdb() -> None:
    """Others take connections and errors from `duck/`, so that DuckDB's API is met in one place."""
    for path in MODULES:
        if room(module_name(path)) != "duck":
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            names = {
                alias.name for one in nodes if isinstance(one, ast.Import) for alias in one.names
            }
            assert "duckdb" not in names, path


def test_no_class_name_stands_twice() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module_name(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
