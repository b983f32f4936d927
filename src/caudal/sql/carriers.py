"""Carrier types: the types in which values pass between DuckDB and Arrow without loss.

Theory of operation
1. A type is given by DuckDB's text for it. The text is parsed here, and every text that this module
   returns is rendered from the parsed type. So nothing but a type can get into the SQL that casts.
2. Between stages (`carrier`), Arrow keeps most types if DuckDB converts without loss. The others
   are converted to a carrier type, and cast back by the stage that reads them: ENUM to text
   (Arrow's dictionaries come back as VARCHAR), TUPLE to STRUCT (it comes back as STRUCT), INTERVAL
   to text (Arrow counts nanoseconds, which overflow after 292 years), UNION to a struct of its tag
   and its members (in Arrow, a union that holds a null becomes null itself).
3. In a result (`shown`), a type that Arrow does not have becomes text, as DuckDB writes it.
4. Only types whose round trip is tested have a carrier. Any other type raises UnknownTypeError, and
   so does a UNION inside an array, a map or a tuple.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(r"""\s*("(?:[^"]|"")*"|'(?:[^']|'')*'|[(),\[\]]|[^\s"'(),\[\]]+)""")
_MOST_CHARACTERS = 16 << 20  # of the text of a type; an ENUM may have many values
_DEEPEST = 64
_DEEPEST_UNION = 3  # the SQL that converts a UNION grows with every level

_KEPT = frozenset({
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
    "UINTEGER", "UBIGINT", "UHUGEINT", "BIGNUM", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIME",
    "TIME_NS", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS",
    "TIME WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS", "UUID", "VARCHAR",
    "JSON", "BLOB", "BIT", "GEOMETRY", "VARIANT", '"NULL"', "STRUCT",
})  # fmt: skip
_AS_TEXT = frozenset({"ENUM", "INTERVAL"})
_SHOWN_AS_TEXT = frozenset({
    "BIT", "TIME WITH TIME ZONE", "BIGNUM", "UHUGEINT", "INTERVAL", "GEOMETRY", "VARIANT", "ENUM",
})  # fmt: skip
WIDE = "UHUGEINT"


@dataclass(frozen=True)
class Plain:
    """A type without parts: its name and the text in its parentheses."""

    name: str
    given: str = ""

    def __str__(self) -> str:
        return self.name + self.given


@dataclass(frozen=True)
class ListedCarrier:
    """A list; with a size, an array."""

    child: "Kind"
    size: str = ""

    def __str__(self) -> str:
        return f"{self.child}[{self.size}]"


@dataclass(frozen=True)
class Nested:
    """A STRUCT, UNION, MAP or TUPLE. The parts of MAP and TUPLE have no names."""

    name: str
    parts: tuple[tuple[str, "Kind"], ...]

    def __str__(self) -> str:
        inside = ", ".join(f"{name} {kind}" if name else str(kind) for name, kind in self.parts)
        return f"{self.name}({inside})"


Kind = Plain | ListedCarrier | Nested
Change = Callable[[Kind, str, int], str]


class UnknownTypeError(ValueError):
    """A type that has no tested carrier. The remedy is a CAST to another type."""


@lru_cache(maxsize=256)
def carrier(type_text: str) -> str | None:
    """Return the carrier of a type; None if values keep their type. See also `leaving`.

    >>> carrier("ENUM('low', 'high')[]"), carrier("STRUCT(a BIT, b TUPLE(DATE))")
    ('VARCHAR[]', 'STRUCT(a BIT, b STRUCT(element1 DATE))')
    >>> carrier("HUGEINT") is None
    True
    """
    return _other(type_text, _carried)


@lru_cache(maxsize=256)
def shown(type_text: str) -> str | None:
    """Return the type in which a result shows values; None if they keep their type.

    >>> shown("MAP(BIT, INTERVAL)"), shown("VARCHAR")
    ('MAP(VARCHAR, VARCHAR)', None)
    """
    if isinstance(kind := parsed(type_text), Plain) and kind.name == "ENUM":
        return None  # Arrow's dictionary; DuckDB crashes on one inside a list
    return _other(type_text, _shown)


def leaving(type_text: str, value: str) -> str:
    """Return SQL that converts a value of this type, an expression, to its carrier.

    >>> leaving("ENUM('a', 'b')", "e"), leaving("DATE", "d")
    ('CAST(e AS VARCHAR)', 'd')
    """
    return _leaving(parsed(type_text), value, 0)


def arriving(type_text: str, value: str) -> str:
    """Return SQL that converts a carrier value, an expression, back to this type."""
    return _arriving(parsed(type_text), value, 0)


def _leaving(kind: Kind, value: str, depth: int) -> str:
    if not _has_union(kind):
        other = carrier(str(kind))
        return value if other is None else f"CAST({value} AS {other})"
    if isinstance(kind, Nested) and kind.name == "UNION":
        parts = [("tag", f"CAST(union_tag({value}) AS VARCHAR)")] + [
            (f"m{place}", _leaving(part, f"union_extract({value}, {_as_text(name)})", depth + 1))
            for place, (name, part) in enumerate(kind.parts, 1)
        ]
        return _struct(value, parts)
    return _through(kind, value, depth, _leaving)


def _arriving(kind: Kind, value: str, depth: int) -> str:
    if not _has_union(kind):
        return value if carrier(str(kind)) is None else f"CAST({value} AS {kind})"
    if isinstance(kind, Nested) and kind.name == "UNION":
        found = []
        for place, (name, part) in enumerate(kind.parts, 1):
            member = _arriving(part, f"struct_extract({value}, 'm{place}')", depth + 1)
            found.append(
                f"WHEN {_as_text(name)} THEN CAST(union_value({name} := {member}) AS {kind})"
            )
        return f"CASE struct_extract({value}, 'tag') {' '.join(found)} END"
    return _through(kind, value, depth, _arriving)


def _through(kind: Kind, value: str, depth: int, change: Change) -> str:
    """Return SQL that converts each part of a list or a struct, where a cast cannot."""
    if depth > _DEEPEST_UNION:
        raise UnknownTypeError(str(kind))
    if isinstance(kind, ListedCarrier) and not kind.size:
        name = f"x{depth}"
        return f"list_transform({value}, lambda {name}: {change(kind.child, name, depth + 1)})"
    if isinstance(kind, Nested) and kind.name == "STRUCT":
        return _struct(
            value,
            [
                (name, change(part, f"struct_extract({value}, {_as_text(name)})", depth + 1))
                for name, part in kind.parts
            ],
        )
    raise UnknownTypeError(str(kind))


def _struct(value: str, parts: list[tuple[str, str]]) -> str:
    """Return SQL for a struct of these parts that is null where the value is null."""
    packed = ", ".join(f"{name} := {part}" for name, part in parts)
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE struct_pack({packed}) END"


def _as_text(name: str) -> str:
    """Return the name of a part as an SQL string."""
    plain = name[1:-1].replace('""', '"') if name.startswith('"') else name
    return "'" + plain.replace("'", "''") + "'"


def _has_union(kind: Kind) -> bool:
    match kind:
        case Plain():
            return False
        case ListedCarrier():
            return _has_union(kind.child)
        case Nested():
            return kind.name == "UNION" or any(_has_union(part) for _, part in kind.parts)


def checked(type_text: str) -> str:
    """Return the text of a type, rendered from the parsed type."""
    return str(parsed(type_text))


def _other(type_text: str, leaf: Callable[[Plain], Plain]) -> str | None:
    kind = parsed(type_text)
    new = _mapped(kind, leaf)
    return None if new == kind else str(new)


def _carried(leaf: Plain) -> Plain:
    if leaf.name in _AS_TEXT:
        return Plain("VARCHAR")
    if leaf.name not in _KEPT:
        raise UnknownTypeError(str(leaf))
    return leaf


def _shown(leaf: Plain) -> Plain:
    return Plain("VARCHAR") if leaf.name in _SHOWN_AS_TEXT else leaf


def _mapped(kind: Kind, leaf: Callable[[Plain], Plain]) -> Kind:
    """Return the type with every leaf replaced, and with STRUCT in place of TUPLE."""
    match kind:
        case Plain():
            return leaf(kind)
        case ListedCarrier():
            return ListedCarrier(_mapped(kind.child, leaf), kind.size)
        case Nested(name="TUPLE"):
            numbered = enumerate((_mapped(part, leaf) for _, part in kind.parts), 1)
            return Nested("STRUCT", tuple((f"element{place}", part) for place, part in numbered))
        case Nested(name="UNION") if leaf is _carried:
            members = [(f"m{n}", _mapped(p, leaf)) for n, (_, p) in enumerate(kind.parts, 1)]
            return Nested("STRUCT", (("tag", Plain("VARCHAR")), *members))
        case Nested():
            return Nested(kind.name, tuple((n, _mapped(part, leaf)) for n, part in kind.parts))


@lru_cache(maxsize=256)
def parsed(type_text: str) -> Kind:
    """Return the parsed form of a type that DuckDB wrote."""
    tokens = _Tokens(type_text)
    kind = _kind(tokens, 0)
    if tokens.next != "":
        raise UnknownTypeError(type_text)
    return kind


class _Tokens:
    """The tokens of a type. `next` is the one to come, empty at the end."""

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_CHARACTERS:
            raise UnknownTypeError(f"{text[:60]}…")
        self._text = text.rstrip()
        self._found = self._read()
        self.next = next(self._found)

    def _read(self) -> Iterator[str]:
        place = 0
        while place < len(self._text):
            found = _TOKEN.match(self._text, place)
            if found is None:
                raise UnknownTypeError(self._text)
            place = found.end()
            yield found.group(1)
        yield ""

    def take(self, wanted: str = "") -> str:
        token = self.next
        if not token or (wanted and token != wanted):
            raise UnknownTypeError(self._text)
        self.next = next(self._found)
        return token

    def took(self, wanted: str) -> bool:
        """Take the next token if it is this one; return whether it was."""
        if self.next != wanted:
            return False
        self.take()
        return True


def _kind(tokens: _Tokens, depth: int) -> Kind:
    if depth > _DEEPEST:
        raise UnknownTypeError("a type nested too deeply")
    name = tokens.take()
    while tokens.next not in ("", "(", ")", ",", "[", "]"):
        name += " " + tokens.take()
    kind: Kind
    if name in ("STRUCT", "UNION", "MAP", "TUPLE") and tokens.took("("):
        kind = Nested(name, tuple(_parts(tokens, depth, named=name in ("STRUCT", "UNION"))))
    else:
        kind = Plain(_leaf_name(name), _given(tokens))
    while tokens.took("["):
        size = "" if tokens.next == "]" else tokens.take()
        if size and not size.isdecimal():
            raise UnknownTypeError(f"{kind}[{size}]")
        tokens.take("]")
        kind = ListedCarrier(kind, size)
    return kind


def _leaf_name(name: str) -> str:
    if name != '"NULL"' and not re.fullmatch(r"[A-Za-z_][\w ]*", name):
        raise UnknownTypeError(name)
    return name


def _parts(tokens: _Tokens, depth: int, *, named: bool) -> Iterator[tuple[str, Kind]]:
    while True:
        name = _part_name(tokens) if named else ""
        yield name, _kind(tokens, depth + 1)
        if tokens.took(")"):
            return
        tokens.take(",")


def _part_name(tokens: _Tokens) -> str:
    name = tokens.take()
    if not name.startswith('"') and not re.fullmatch(r"\w+", name):
        raise UnknownTypeError(name)
    return name


def _given(tokens: _Tokens) -> str:
    """Return the parentheses of a type without parts: numbers or strings."""
    if not tokens.took("("):
        return ""
    values = []
    while True:
        value = tokens.take()
        if not (value.startswith("'") or value.isdecimal()):
            raise UnknownTypeError(value)
        values.append(value)
        if tokens.took(")"):
            return f"({', '.join(values)})"
        tokens.take(",")
