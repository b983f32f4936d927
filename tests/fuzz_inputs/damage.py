"""Ways to damage bytes and JSON. Everything is decided by the given chance."""

import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

NUMBERS = (
    *(0, 1, -1, 2, 7, 8, 63, 64, 127, 255, 256, 65_535, 65_536),
    *((1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32, (1 << 53), 1 << 62, (1 << 63) - 1, -(1 << 63)),
)
WORDS = (
    b"\n",
    b",",
    b'"',
    b'""',
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xe2\x80",
    b"\\",
    b"'",
    b"[",
    b"{'name': ",
)


def damaged(data: bytes, chance: Random, most: int = 4) -> bytes:
    """The bytes with a few things wrong."""
    for _ in range(chance.randint(1, most)):
        data = chance.choice(_WAYS)(data, chance)
    return data


def forged(data: bytes, chance: Random) -> bytes:
    """Mostly only one or two numbers wrong, so that the rest is still believed."""
    if chance.random() < 0.2:
        return damaged(data, chance)
    for _ in range(chance.randint(1, 2)):
        data = chance.choice((_overwrite, _nudge, _flip))(data, chance)
    return data


def _flip(data: bytes, chance: Random) -> bytes:
    if not data:
        return data
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def _truncate(data: bytes, chance: Random) -> bytes:
    return data[: chance.randint(0, len(data))]


def _overwrite(data: bytes, chance: Random) -> bytes:
    """A number of four or eight bytes, mostly where numbers lie."""
    kind, width = chance.choice((("<i", 4), ("<q", 8)))
    if len(data) < width:
        return data
    place = chance.randrange(len(data) - width + 1)
    if chance.random() < 0.8:
        place -= place % 4
    mask = (1 << 8 * width) - 1
    number = (chance.choice(NUMBERS) + chance.choice((0, 0, 0, 1, -1))) & mask
    packed = struct.pack(kind.upper(), number)
    return data[:place] + packed + data[place + width :]


def _nudge(data: bytes, chance: Random) -> bytes:
    """A number that is there, a little larger or smaller."""
    if len(data) < 4:
        return data
    place = chance.randrange(len(data) - 3) & ~3
    number = int.from_bytes(data[place : place + 4], "little") + chance.choice((1, -1, 8, -8, 4096))
    return data[:place] + (number & 0xFFFFFFFF).to_bytes(4, "little") + data[place + 4 :]


def _insert(data: bytes, chance: Random) -> bytes:
    place = chance.randint(0, len(data))
    return data[:place] + chance.choice(WORDS) * chance.choice((1, 1, 2, 9)) + data[place:]


def _repeat(data: bytes, chance: Random) -> bytes:
    start = chance.randint(0, len(data))
    end = min(len(data), start + chance.randint(0, 200))
    return data[:end] + data[start:end] * chance.choice((1, 2, 5)) + data[end:]


def _cut_out(data: bytes, chance: Random) -> bytes:
    start = chance.randint(0, len(data))
    return data[:start] + data[start + chance.randint(1, 64) :]


_WAYS: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_flip, _flip, _truncate, _overwrite, _overwrite, _overwrite),
    *(_nudge, _nudge, _insert, _repeat, _cut_out),
)

_VALUES: tuple[Any, ...] = (
    *NUMBERS,
    *(10**30, -(10**30), 0.5, 1e300, None, True, "", "x", "../x", "\ud800", "é" * 300, [], {}),
    *([0, 0, 0, ""], [[]], {"a": 1}, ["a"] * 500, "none", "zstd", "csv", "arrow", "0" * 32),
)


def damaged_json(text: bytes, chance: Random) -> bytes:
    """JSON of nearly the same shape; now and then no JSON at all."""
    if chance.random() < 0.2:
        return damaged(text, chance)
    try:
        content = json.loads(text)
    except ValueError:
        return damaged(text, chance)
    for _ in range(chance.randint(1, 3)):
        content = _changed(content, chance)
    return json.dumps(content, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _changed(content: Any, chance: Random) -> Any:
    """One value somewhere inside replaced, removed or doubled."""
    if isinstance(content, dict) and content and chance.random() < 0.9:
        name = chance.choice(list(content))
        if chance.random() < 0.1:
            return {key: value for key, value in content.items() if key != name}
        return content | {name: _changed(content[name], chance)}
    if isinstance(content, list) and content and chance.random() < 0.9:
        place = chance.randrange(len(content))
        if chance.random() < 0.2:
            return content[:place] + content[place + 1 :] * chance.choice((0, 1, 2))
        return [*content[:place], _changed(content[place], chance), *content[place + 1 :]]
    if chance.random() < 0.02:
        return _deep(chance.choice((50, 5_000)))
    if isinstance(content, int) and chance.random() < 0.5:
        return content + chance.choice((1, -1, 8, -8, 100))
    return chance.choice(_VALUES)


def _deep(depth: int) -> Any:
    content: Any = []
    for _ in range(depth if depth < 900 else 900):
        content = [content]
    return content
