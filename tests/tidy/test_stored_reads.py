"""What is stored is read in one place, which checks it: jobs/objects.py."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "caudal"
ROOMS = ("jobs", "local", "gateway", "worker")
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
READERS = {"jobs/objects.py"}
STORES = {"local/borrowed.py"}  # is a store itself, around another


def reads(path: Path) -> list[str]:
    """Where an attribute `read` of something called a store is used."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "read"
        and ast.unparse(node.value).rsplit(".", 1)[-1].lstrip("_") in {"store", "inner"}
    ]  # fmt: skip


def test_a_stored_object_is_read_by_who_checks_it() -> None:
    others = {
        name: path
        for path in MODULES
        if (name := str(path.relative_to(ROOT))) not in READERS | STORES
    }
    assert {name: found for name, path in others.items() if (found := reads(path))} == {}


def test_the_rule_sees_reads() -> None:
    for name in READERS | STORES:
        assert reads(ROOT / name)
