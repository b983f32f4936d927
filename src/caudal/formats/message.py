"""A task on its way to a worker, as bytes. docs/formats/messages.md.

{"job": J, "run": RUN, "task": {"kind": K, "name": NAME, "number": N}, "group": G,
 "slow": 0, "format": 1}
"""

import msgspec

from caudal.errors import FormatError
from caudal.formats.frame import JSON_ERRORS
from caudal.formats.keys import Message, defect

FORMAT = 1
MOST_BYTES = 2_048


def encode(message: Message) -> bytes:
    return msgspec.json.encode(message)


def decode(data: bytes) -> Message:
    """A message; FormatError if it is something else, of another format, or names what cannot be.

    Whoever reaches the broker may write one: nothing of it is believed that was not looked at.
    """
    if len(data) > MOST_BYTES:
        raise FormatError(f"not a task message: {len(data)} bytes, and {MOST_BYTES} are the most")
    try:
        message = msgspec.json.decode(data, type=Message)
    except JSON_ERRORS as error:
        raise FormatError(f"not a task message: {error}") from error
    if message.format != FORMAT:
        raise FormatError(f"a task message has format {message.format}, this Caudal reads {FORMAT}")
    if wrong := defect(message):
        raise FormatError(f"not a task message: {wrong}")
    return message
