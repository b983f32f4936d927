"""A task on its way to a worker, as bytes. docs/formats/messages.md.

{"job": J, "run": RUN, "task": {"kind": K, "name": NAME, "number": N}, "group": G, "format": 1}
"""

import msgspec

from caudal.core.tasks import Message
from caudal.errors import FormatError

FORMAT = 1


def encode(message: Message) -> bytes:
    return msgspec.json.encode(message)


def decode(data: bytes) -> Message:
    """A message; FormatError if it is something else or of another format."""
    try:
        message = msgspec.json.decode(data, type=Message)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FormatError(f"not a task message: {error}") from error
    if message.format != FORMAT:
        raise FormatError(f"a task message has format {message.format}, this Caudal reads {FORMAT}")
    return message
