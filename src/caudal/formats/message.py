"""A task on its way to a worker, as bytes. docs/formats/messages.md.

{"job": J, "run": RUN, "task": {"kind": K, "name": NAME, "number": N}, "group": G, "format": 1}
"""

import re

import msgspec

from caudal.core.tasks import Message
from caudal.errors import FormatError
from caudal.formats.frame import JSON_ERRORS

FORMAT = 1

_MOST_GROUP = 1_000
_MOST_NUMBER = 1 << 40
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}\Z")  # they become parts of keys


def encode(message: Message) -> bytes:
    return msgspec.json.encode(message)


def decode(data: bytes) -> Message:
    """A message; FormatError if it is something else or of another format."""
    try:
        message = msgspec.json.decode(data, type=Message)
    except JSON_ERRORS as error:
        raise FormatError(f"not a task message: {error}") from error
    if message.format != FORMAT:
        raise FormatError(f"a task message has format {message.format}, this Caudal reads {FORMAT}")
    if not (
        1 <= message.group <= _MOST_GROUP
        and 0 <= message.task.number <= _MOST_NUMBER
        and all(map(_NAME.match, (message.job, message.run, message.task.name)))
    ):
        raise FormatError("a task message names what cannot be: its numbers or names are wrong")
    return message
