"""Objects never change: only series may call a store's `replace`.

Found by name: a call of `.replace(` on anything called `store` or ending in `_store`, wherever it
comes from (`store`, `self._store`, `job.store`, `open_store(...)`). Strings have a `replace` too,
so a type checker would be needed to find stores under other names: call them stores.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "caudal"
ALLOWED = {"series", "store"}
MODULES = sorted(
    path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in ALLOWED
)


def replaces(text: str) -> list[int]:
    """The lines on which a store's `replace` is called, or taken to be called later."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "replace" and is_store(node.value)
    ]


def is_store(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lower().endswith("store")
        case ast.Call(func=called):
            return is_store(called)
    return False


def test_only_series_replaces_objects() -> None:
    found = {str(path): replaces(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    ["store.replace(k, b)", "self._store.replace(k, b)", "job.result_store.replace(k, b)",
     "open_store(url).replace(k, b)", "MemoryStore().replace(k, b)", "go(store.replace)"]
)  # fmt: skip
def test_the_search_finds_them(text: str) -> None:
    assert replaces(text) == [1]


def test_strings_may_replace() -> None:
    assert replaces('text.replace("a", "b"); path.name.replace("store", "")') == []
