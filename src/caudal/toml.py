"""Decode TOML files that people write into typed values. Say mistakes in plain words.

Rules
1. msgspec decides whether a value fits its type. Only then is the first mistake looked for.
2. A mistake is told where it stands in the file: `[hosts.a] workers = "two": must be ...`.
3. An unknown key: the key that is like it, or the table where such a key belongs.
"""

import datetime
import difflib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect

from caudal.decoding import Value, convert

_TIMES = (datetime.datetime, datetime.date, datetime.time)
_LONGEST_VALUE = 40
_ANY = "NAME"  # a key that the user chooses
_FORMS: tuple[tuple[type[inspect.Type], type | tuple[type, ...], str], ...] = (
    (inspect.StrType, str, 'text in "quotes"'),
    (inspect.IntType, int, "a whole number"),
    (inspect.FloatType, (int, float), "a number"),
    (inspect.BoolType, bool, "true or false"),
    (inspect.DictType, dict, "a table"),
    (inspect.StructType, dict, "a table"),
    (inspect.ListType, list, "a list in [brackets]"),
    (inspect.VarTupleType, list, "a list in [brackets]"),
)

_Path = tuple[str | int, ...]


class TomlError(ValueError):
    """What is wrong with a file, in words that follow its path and a colon."""


def decode_toml(data: bytes, kind: type[Value]) -> Value:
    """Raise TomlError if the data is no TOML, or no value of the type."""
    try:
        found: Any = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise TomlError("not valid TOML: it is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise TomlError(f"not valid TOML, correct it: {error}") from None
    try:
        return convert(found, kind, native=_TIMES)
    except msgspec.ValidationError as error:
        whole = inspect.type_info(kind)
        mistake = next(_mistakes(found, whole, ()), None)
        raise TomlError(mistake.words(whole) if mistake else str(error)) from None


@dataclass(frozen=True)
class _Mistake:
    """What does not fit: a value, or a key that is unknown or missing."""

    path: _Path
    what: str
    unknown: str = ""

    def words(self, whole: inspect.Type) -> str:
        advice = _advice(self.unknown, self.path[:-1], whole) if self.unknown else ""
        return f"{_place(self.path)}{self.what}{advice}"


def _mistakes(value: Any, kind: inspect.Type, path: _Path) -> Iterator[_Mistake]:
    """Yield what does not fit, in the order of the file."""
    kinds = _alternatives(kind)
    fitting = next((one for one in kinds if _fits(value, one)), None)
    match fitting:
        case None:
            yield _Mistake(path, f"{_shown(value)}: must be {_wanted(kinds)}")
        case inspect.StructType():
            yield from _struct_mistakes(value, fitting, path)
        case inspect.DictType():
            for key, inner in value.items():
                yield from _mistakes(inner, fitting.value_type, (*path, key))
        case inspect.ListType() | inspect.VarTupleType():
            for number, inner in enumerate(value, 1):
                yield from _mistakes(inner, fitting.item_type, (*path, number))


def _struct_mistakes(
    value: dict[str, Any], kind: inspect.StructType, path: _Path
) -> Iterator[_Mistake]:
    known = {one.encode_name: one for one in kind.fields}
    for key, inner in value.items():
        if key in known:
            yield from _mistakes(inner, known[key].type, (*path, key))
        elif kind.forbid_unknown_fields:
            yield _Mistake((*path, key), ": unknown key", key)
    for key, one in known.items():
        if one.required and key not in value:
            yield _Mistake((*path, key), ": is missing")


def _alternatives(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _fits(value: Any, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.AnyType):
        return True
    if isinstance(kind, inspect.EnumType):
        return value in [one.value for one in kind.cls]
    for one, types, _ in _FORMS:
        if isinstance(kind, one):
            return isinstance(value, types) and (types is bool or not isinstance(value, bool))
    return False


def _wanted(kinds: tuple[inspect.Type, ...]) -> str:
    words = []
    for kind in kinds:
        if isinstance(kind, inspect.EnumType):
            words += [json.dumps(one.value) for one in kind.cls]
        elif isinstance(kind, inspect.ListType) and isinstance(kind.item_type, inspect.StructType):
            words.append("tables with [[double brackets]]")
        else:
            words += [word for one, _, word in _FORMS if isinstance(kind, one)]
    return " or ".join([", ".join(words[:-1]), *words[-1:]] if words[1:] else words)


def _place(path: _Path) -> str:
    """Return a place as the file has it, such as `[hosts.a] workers`. Items are counted from 1."""
    if isinstance(path[-1], int):
        return f"{_place(path[:-1])}, item {path[-1]}"
    for number, step in enumerate(path):
        if isinstance(step, int):
            inner = ".".join(map(str, path[number + 1 :]))
            return f"[[{'.'.join(map(str, path[:number]))}]] {step}: {inner}"
    *tables, last = path
    return f"[{'.'.join(map(str, tables))}] {last}" if tables else str(last)


def _shown(value: Any) -> str:
    """Return a short value as it may be told; an address may hold a password."""
    if isinstance(value, str) and ("://" in value or "@" in value):
        return ""
    if isinstance(value, str | int | float):  # a bool is an int
        text = json.dumps(value, ensure_ascii=False)
        return f" = {text}" if len(text) <= _LONGEST_VALUE else ""
    return ""


def _advice(key: str, table: _Path, whole: inspect.Type) -> str:
    keys_of = dict(_tables(whole, ()))
    for path, keys in keys_of.items():
        if key in keys:
            return f"; it belongs to {_header(path)}"
    here = next((keys for path, keys in keys_of.items() if _is_like(table, path)), [])
    like = difflib.get_close_matches(key, here, 1)
    return f"; do you mean {like[0]}?" if like else ""


def _header(path: _Path) -> str:
    """Return how the file begins such a table."""
    if path and isinstance(path[-1], int):
        return f"[[{path[-2]}]]"
    return f"[{'.'.join(map(str, path))}]" if path else "the top of the file"


def _tables(kind: inspect.Type, path: _Path) -> Iterator[tuple[_Path, list[str]]]:
    """Yield the path of every table that a file may have, with its keys."""
    for one in _alternatives(kind):
        if isinstance(one, inspect.StructType):
            yield path, [field.encode_name for field in one.fields]
            for field in one.fields:
                yield from _tables(field.type, (*path, field.encode_name))
        elif isinstance(one, inspect.DictType):
            yield from _tables(one.value_type, (*path, _ANY))
        elif isinstance(one, inspect.ListType | inspect.VarTupleType):
            yield from _tables(one.item_type, (*path, 1))


def _is_like(path: _Path, pattern: _Path) -> bool:
    return len(path) == len(pattern) and all(
        one == other or other == _ANY or (isinstance(one, int) and isinstance(other, int))
        for one, other in zip(path, pattern, strict=True)
    )
