"""Check what app.toml or the command line says about files, and put both together."""

import re
from dataclasses import fields, replace

from caudal.errors import UsageError
from caudal.files.date_pattern import date_pattern
from caudal.files.encodings import known_encoding
from caudal.model import Reading

FORMATS = ("csv", "json", "excel")
USUAL = Reading()


def checked(reading: Reading) -> Reading:
    """Return the reading with usual names of its parts; raise UsageError if one is wrong."""
    delimiter = {"\\t": "\t", "tab": "\t"}.get(reading.delimiter or "", reading.delimiter)
    if reading.format is not None and reading.format not in FORMATS:
        raise UsageError(f"format {reading.format!r}: choose {', '.join(FORMATS)}")
    _check_mark("delimiter", delimiter)
    if reading.quote:
        _check_mark("quote", reading.quote)
    if delimiter and delimiter == (reading.quote or '"'):
        raise UsageError(f"delimiter and quote are both {delimiter!r}: choose another one")
    if reading.comment is not None and not re.fullmatch(r"[^\s\"]{1,10}", reading.comment):
        raise UsageError(
            f"comment {reading.comment!r}: give the mark that such lines begin with: #"
        )
    if reading.skip is not None and not 0 <= reading.skip <= 1_000_000:
        raise UsageError(f"skip {reading.skip}: give a number of lines, at most a million")
    for decimal in _settings(reading.decimal):
        if decimal not in (",", "."):
            raise UsageError(f"decimal {decimal!r}: choose , or .")
    for date_format in _settings(reading.date_format):
        date_pattern(date_format)
    _check_names(reading.names)
    encoding = None if reading.encoding is None else known_encoding(reading.encoding)
    return replace(reading, delimiter=delimiter, encoding=encoding)


def _check_mark(what: str, mark: str | None) -> None:
    if mark is not None and not re.fullmatch(r"[\t\x20-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]", mark):
        raise UsageError(f"{what} {mark!r}: give one ASCII character, no letter or digit")


def _settings(setting: str | dict[str, str] | None) -> list[str]:
    if isinstance(setting, dict):
        return list(setting.values())
    return [] if setting is None else [setting]


def _check_names(names: tuple[str, ...] | None) -> None:
    for name in names or ():
        if "\n" in name or "\r" in name:
            raise UsageError(f"names: {name!r} holds a line end")


def over(given: Reading, usual: Reading | None) -> Reading:
    """Return what is given, and for the rest what is usual."""
    if usual is None:
        return given
    changed = {
        one.name: getattr(given, one.name)
        for one in fields(Reading)
        if getattr(given, one.name) not in (None, False)
        or (one.name == "header" and given.header is False)
    }
    return replace(usual, **changed)
