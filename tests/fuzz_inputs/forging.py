"""Targets of the fuzzer, and objects that are forged: damaged inside, under digests that match."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from caudal.formats import document, frame
from caudal.formats.digest import digest
from tests.fuzz_inputs.damage import damaged, damaged_json, forged


@dataclass(frozen=True)
class Target:
    """Reads one damaged input; `errors` are all that it may raise."""

    read: Callable[[Random], object]
    errors: tuple[type[Exception], ...]
    weight: int = 1


def reframed(data: bytes, chance: Random) -> bytes:
    """A frame with a damaged index that matches its digest, or with anything damaged."""
    if chance.random() < 0.1:
        return damaged(data, chance)
    length = int.from_bytes(data[8:12], "little")
    text, body = (
        data[frame.HEAD_BYTES : frame.HEAD_BYTES + length],
        data[frame.HEAD_BYTES + length :],
    )
    if chance.random() < 0.6:
        text = damaged_json(text, chance)
    else:
        text, body = _with_body(text, forged(body, chance))
    return data[:8] + len(text).to_bytes(4, "little") + digest(text).encode() + text + body


def _with_body(text: bytes, body: bytes) -> tuple[bytes, bytes]:
    """An index whose digests and lengths are those of a damaged body."""
    content = msgspec.json.decode(text)
    if "codec" in content and content["codec"] == "none":
        content |= {"bytes": len(body), "digest": digest(body)}
    return msgspec.json.encode(_redigested(content, body)), body


def _redigested(content: Any, body: bytes) -> Any:
    if isinstance(content, dict):
        return {name: _redigested(value, body) for name, value in content.items()}
    if isinstance(content, list):
        if len(content) == 4 and isinstance(content[3], str) and isinstance(content[0], int):
            offset, length, rows, _ = content
            part = body[offset : offset + length]
            return [offset, len(part), rows, digest(part) if part else ""]
        return [_redigested(value, body) for value in content]
    return content


def redocumented(data: bytes, chance: Random) -> bytes:
    if chance.random() < 0.2:
        return damaged_json(data, chance)
    envelope = msgspec.json.decode(data, type=document._Envelope)
    text = damaged_json(bytes(envelope.content), chance)
    head = f'{{"kind":"{envelope.kind}","format":1,"digest":"{digest(text)}","content":'
    return head.encode() + text + b"}"
