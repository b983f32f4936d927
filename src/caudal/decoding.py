"""Decode JSON and MessagePack into typed values, in any thread.

msgspec prepares a type when it is first used. Two threads that prepare the same type at the same
time crash the process (msgspec 0.22: one sees what the other has half made).

Rules
1. Types are prepared here, one at a time. A prepared type is used by all threads without a lock.
2. No other module makes decoders or converts to types (tests/tidy/test_decoding.py).
"""

import threading
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

Value = TypeVar("Value")

_preparing = threading.Lock()
_of_json: dict[Any, msgspec.json.Decoder[Any]] = {}
_of_messages: dict[Any, msgspec.msgpack.Decoder[Any]] = {}


def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type."""
    found = _of_json.get(kind)
    if found is None:
        with _preparing:
            found = _of_json.setdefault(kind, msgspec.json.Decoder(kind))
    return found


def msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder of a type."""
    found = _of_messages.get(kind)
    if found is None:
        with _preparing:
            found = _of_messages.setdefault(kind, msgspec.msgpack.Decoder(kind))
    return found


def decode_json(data: bytes | bytearray | memoryview | str, kind: type[Value]) -> Value:
    """Raise msgspec.DecodeError if the data is no JSON, or no value of the type."""
    found: Value = json_decoder(kind).decode(data)
    return found


def decode_msgpack(data: bytes | bytearray | memoryview, kind: type[Value]) -> Value:
    """Raise msgspec.DecodeError if the data is no MessagePack, or no value of the type."""
    found: Value = msgpack_decoder(kind).decode(data)
    return found


def convert(value: object, kind: type[Value], *, native: Iterable[type] = ()) -> Value:
    """Raise msgspec.ValidationError if the value is none of the type. `native`: types whose values
    are there as such, not as text."""
    json_decoder(kind)  # prepares it
    return msgspec.convert(value, kind, builtin_types=native)
