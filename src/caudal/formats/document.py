"""Small objects that people may want to read: JSON with its kind, its format and a digest.

    {"kind": "end", "format": 1, "digest": "<of content>", "content": {...}}

The digest covers the bytes of the content exactly as stored, so no canonical form is needed.
"""

from typing import Any, TypeVar

import msgspec

from caudal.decoding import decode_json
from caudal.errors import FormatError
from caudal.formats.digest import digest
from caudal.formats.frame import JSON_ERRORS

Content = TypeVar("Content")


class _Envelope(msgspec.Struct, frozen=True):
    kind: str
    format: int
    digest: str
    content: msgspec.Raw


def encode(kind: str, number: int, content: Any) -> bytes:
    """Return a document of that kind, in that format."""
    text = msgspec.json.encode(content)
    return msgspec.json.encode(_Envelope(kind, number, digest(text), msgspec.Raw(text)))


def decode(data: bytes, kind: str, number: int, content: type[Content], key: str) -> Content:
    """Return a document's content. Raise FormatError if its kind or format differs or it is
    damaged."""
    try:
        envelope = decode_json(data, _Envelope)
        if envelope.kind != kind:
            raise FormatError(f"{key} is a document of kind {envelope.kind!r}, not {kind!r}")
        if envelope.format != number:
            raise FormatError(f"{key} has format {envelope.format}, this Caudal reads {number}")
        if digest(bytes(envelope.content)) != envelope.digest:
            raise FormatError(f"{key} is damaged: its content does not match its digest")
        return decode_json(envelope.content, content)
    except JSON_ERRORS as error:
        raise FormatError(f"{key} is no document of kind {kind!r}: {error}") from error
