"""Patterns do without possessive repeats and atomic groups.

In Python 3.11.2, that of Debian 12, possessive repeats of groups miss matches.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import caudal

SOURCE = Path(caudal.__file__).parent
POSSESSIVE = re.compile(r"[)\]\w.][*+?]\+|\{[\d,]+\}\+|\(\?>")


def texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_pattern_is_possessive() -> None:
    found = [
        (path.name, text)
        for path in SOURCE.rglob("*.py")
        for text in texts(ast.parse(path.read_text()))
        if POSSESSIVE.search(text)
    ]
    assert not found
