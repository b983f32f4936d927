"""Objects of JSON, one on each line, as columns of text.

Rules:
1. A value is its text: that of a string, the digits of a number as they stand, the JSON of a list
   or an object. Null, an empty string and a missing key are null.
2. A line that is no object is a damaged row. Empty lines are left out.
3. Every key of the file is a column, wherever it first appears. Nested keys are not split.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa

from caudal.decoding import json_decoder
from caudal.errors import DataError
from caudal.files.typed_texts import DAMAGE
from caudal.kernels.csv.records import MAX_RECORD_BYTES, NOT_AN_OBJECT

_ROWS = 16_384
_LONGEST = 8 * MAX_RECORD_BYTES

_objects: msgspec.json.Decoder[dict[str, msgspec.Raw]] = json_decoder(dict[str, msgspec.Raw])
_texts: msgspec.json.Decoder[str] = json_decoder(str)


def is_json_lines(sample: bytes, *, final: bool) -> bool:
    """Return whether a text begins with an object on a line, and most of its lines are such."""
    if not sample.lstrip().startswith(b"{"):
        return False
    lines = sample.splitlines()
    whole = [line for line in (lines if final else lines[:-1]) if line.strip()]
    objects = [_object(line) is not None for line in whole[:20]]
    return bool(objects) and objects[0] and 2 * sum(objects) >= len(objects)


def key_names(pieces: Iterable[bytes], file: str) -> tuple[str, ...]:
    """Return all keys of all objects, in the order of their first appearance."""
    found: dict[str, None] = {}
    for line in _lines(pieces, file):
        found |= dict.fromkeys(_object(line) or ())
    return tuple(found)


def read_objects(
    pieces: Iterable[bytes], names: Sequence[str], file: str
) -> Iterator[tuple[pa.Table, int]]:
    """Yield rows as columns of text and of damage, each with the number of its first line."""
    lines: list[bytes] = []
    first = 1
    for line in _lines(pieces, file):
        lines.append(line)
        if len(lines) == _ROWS:
            yield _table(lines, names), first
            first += len(lines)
            lines = []
    if lines or first == 1:
        yield _table(lines, names), first


def _table(lines: Sequence[bytes], names: Sequence[str]) -> pa.Table:
    objects = [_object(line) for line in lines]
    damage = [
        None if one is not None else (NOT_AN_OBJECT if line.strip() else 0)
        for one, line in zip(objects, lines, strict=True)
    ]
    columns = {name: pa.array([_text(one, name) for one in objects], pa.string()) for name in names}
    return pa.table({**columns, DAMAGE: pa.array(damage, pa.int8())})


def _text(row: dict[str, msgspec.Raw] | None, name: str) -> str | None:
    raw = bytes(row[name]) if row and name in row else b"null"
    if raw.startswith(b'"'):
        return _texts.decode(raw) or None
    return None if raw == b"null" else raw.decode()


def _object(line: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return _objects.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _lines(pieces: Iterable[bytes], file: str) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
        if len(rest) > _LONGEST:
            raise DataError(f"{file}: a line does not end within {_LONGEST >> 20} MiB")
    if rest:
        yield rest
