"""What documents may name: the files, functions and classes of the tree."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "caudal"
ADRS = ROOT / "docs" / "adr"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_PLACES = (ROOT, PACKAGE, PACKAGE / "apps" / "books", PACKAGE / "apps" / "movies")


def shown(path: Path) -> str:
    """Return a path for messages and the names of tests."""
    return str(path.relative_to(ROOT))


def exists(name: str) -> bool:
    """Tell whether a file or folder is there, as documents name it.

    Paths count from the root, the package or a shipped application. A bare name is any module's.
    """
    return any((place / name).exists() for place in _PLACES) or name in _file_names()


@cache
def _file_names() -> frozenset[str]:
    return frozenset(path.name for path in _modules("src", "tests", "bench"))


@cache
def definitions(*folders: str) -> frozenset[str]:
    """Return the names of all functions and classes in these folders."""
    return frozenset(
        node.name
        for path in _modules(*folders)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _modules(*folders: str) -> list[Path]:
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


FILE = re.compile(r"(?<![\w./*{}-])((?:[\w.-]+/)*[\w-]+\.(?:py|sql))\b")
