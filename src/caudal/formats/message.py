"""The message that brings a task to a worker, as bytes. See docs/formats/messages.md.

{"job": J, "run": RUN, "task": {"kind": K, "name": NAME, "number": N}, "group": G,
 "slow": 0, "format": 1}
"""

import msgspec

from caudal.decoding import decode_json
from caudal.errors import FormatError
from caudal.formats.frame import JSON_ERRORS
from caudal.formats.keys import Message, defect

FORMAT = 1
MOST_BYTES = 2_048


def encode(message: Message) -> bytes:
    return msgspec.json.encode(message)


def decode(data: bytes) -> Message:
    """Return a message. Raise FormatError if it is none, has another format, or invalid names.

    Every process that reaches the broker can write one, so every field is checked.
    """
    if len(data) > MOST_BYTES:
        raise FormatError(
            f"not a task message: {len(data)} bytes; at most {MOST_BYTES} are allowed"
        )
    try:
        message = decode_json(data, Message)
    except JSON_ERRORS as error:
        raise FormatError(f"not a task message: {error}") from error
    if message.format != FORMAT:
        raise FormatError(f"a task message has format {message.format}, this Caudal reads {FORMAT}")
    if wrong := defect(message):
        raise FormatError(f"not a task message: {wrong}")
    return message
