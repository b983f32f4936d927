"""The page of files names every key of app.toml and every option, and no others."""

import re
from dataclasses import fields
from pathlib import Path

import msgspec

from caudal.application import folder
from caudal.cli.options import ReadingOptions
from caudal.model import Reading

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "files.md"


def keys(heading: str) -> list[str]:
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` ", section, re.MULTILINE)


def test_every_key_of_a_table() -> None:
    entry = [field.name for field in msgspec.structs.fields(folder._TableEntry)]
    assert keys("Keys of a table in app.toml") == entry
    assert [field.name for field in fields(Reading)] == entry[3:]


def test_every_other_key() -> None:
    known = {field.name for field in msgspec.structs.fields(folder._AppFile)}
    assert set(keys("Other keys of app.toml")) == known


def test_every_option() -> None:
    text = PAGE.read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `\w+` \| `--([\w-]+)`", text, re.MULTILINE)) - {"file"}
    offered = {field.name.strip("_").replace("_", "-") for field in fields(ReadingOptions)}
    assert told == offered - {"format"} | {"input"}
