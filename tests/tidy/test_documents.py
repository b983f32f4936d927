"""Documents name what exists: files, folders, tests, links."""

import re
from pathlib import Path

import pytest

from tests.tidy.documents import ADRS, DOCUMENTS, FILE, definitions, exists, shown

TREES = ("src", "tests", "docs", "deploy", "bench")
OLD_ROOMS = ("core", "engine", "tasks")
FORMER = re.compile(r"\bformer(ly)?\b")  # how a line of an ADR says that a name is an old one
_FOLDER = re.compile(r"`([\w-]+)/([\w/-]*)`")
_TEST = re.compile(r"`(test_\w+)`")
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def lines(path: Path) -> list[str]:
    """The lines of a document that speak of the present tree."""
    found = path.read_text(encoding="utf-8").splitlines()
    return [line for line in found if not (path.parent == ADRS and FORMER.search(line))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_named_files_exist(path: Path) -> None:
    named = {name for line in lines(path) for name in FILE.findall(line) if name.endswith(".py")}
    assert sorted(name for name in named if not exists(name)) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_named_folders_exist(path: Path) -> None:
    named = {(top, rest) for line in lines(path) for top, rest in _FOLDER.findall(line)}
    wrong = {f"{top}/{rest}" for top, rest in named if top in OLD_ROOMS}
    wrong |= {
        f"{top}/{rest}" for top, rest in named if top in TREES and not exists(f"{top}/{rest}")
    }
    assert sorted(wrong) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_named_tests_exist(path: Path) -> None:
    named = {name for line in lines(path) for name in _TEST.findall(line)}
    assert named <= definitions("tests")


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_links_lead_somewhere(path: Path) -> None:
    links = {link for line in lines(path) for link in _LINK.findall(line)}
    assert sorted(link for link in links if not (path.parent / link).exists()) == []


def test_every_document_is_on_the_map() -> None:
    """docs/README.md leads to every page, or to the README of its folder."""
    docs = ADRS.parent
    text = (docs / "README.md").read_text(encoding="utf-8")
    linked = {(docs / link).resolve() for link in _LINK.findall(text)}
    for path in docs.rglob("*.md"):
        assert path == docs / "README.md" or path in linked or path.parent in linked, path
