"""Documents name what exists: files, folders, tests, links."""

import re
from pathlib import Path

import pytest

from caudal.cli.program import COMMANDS
from tests.tidy.documents import ADRS, DOCUMENTS, FILE, PACKAGE, ROOT, definitions, exists, shown

TREES = ("src", "tests", "docs", "deploy", "bench")
MAP = ADRS.parent / "README.md"
OLD_ROOMS = ("core", "engine", "tasks")
FORMER = re.compile(r"\bformer(ly)?\b")  # how a line of an ADR says that a name is an old one
_FOLDER = re.compile(r"`([\w-]+)/([\w/-]*)`")
_TEST = re.compile(r"`(test_\w+)`")
_CLASS = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`")
_MAKE = re.compile(r"(?:`make |^make (?=\S+ +#))([\w./-]+)", re.MULTILINE)
_COMMAND = re.compile(r"(?:`|^|\| )caudal ([a-z]+)\b(?!:)", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def lines(path: Path) -> list[str]:
    """The lines of a document that speak of the present tree."""
    found = path.read_text(encoding="utf-8").splitlines()
    return [line for line in found if not (path.parent == ADRS and FORMER.search(line))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_named_files_exist(path: Path) -> None:
    named = {name for line in lines(path) for name in FILE.findall(line) if name.endswith(".py")}
    assert sorted(name for name in named if not exists(name)) == []


def test_files_named_in_code_exist() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        named = set(FILE.findall(path.read_text(encoding="utf-8")))
        near = {name for name in named if (path.parent / name).exists()}
        wrong = {name for name in named - near if name.endswith(".py") and not exists(name)}
        assert not wrong, shown(path)


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


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_named_classes_exist(path: Path) -> None:
    named = {name for line in lines(path) for name in _CLASS.findall(line)}
    assert named <= definitions("src")


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_named_commands_and_make_targets_exist(path: Path) -> None:
    text = "\n".join(lines(path))
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([\w./-]+):", makefile, re.MULTILINE))
    assert set(_MAKE.findall(text)) <= targets
    assert set(_COMMAND.findall(text)) <= {command.name for command in COMMANDS}


def test_every_document_is_on_the_map() -> None:
    linked = {(MAP.parent / link).resolve() for link in _LINK.findall(MAP.read_text("utf-8"))}
    pages = {path for path in MAP.parent.rglob("*.md") if path.parent != MAP.parent / "queries"}
    assert pages - linked == {MAP}
