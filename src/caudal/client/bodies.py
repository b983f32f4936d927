"""Bodies of answers, read within bounds: the gateway is not trusted.

Rules
1. A reply is small. A reply that exceeds a fixed size or takes too long is refused.
2. The head of a result states its size, query, job and run. The head comes first and is bounded;
   then exactly that many bytes are read. More, fewer or wrong bytes are refused, and so are those
   of another query, job or run, and a size that this machine could not hold.
3. Each line of a stream is bounded. Once begun, a line must continue at a minimum pace (pace.py).
4. Nothing is decompressed: no compression is requested, and none is accepted.

A refused body raises FormatError. Its message says what is wrong, but not who sent it.
"""

import os
import time
from collections.abc import Callable, Iterator

import httpcore
import httpx

from caudal.client.pace import Pace
from caudal.errors import FormatError
from caudal.formats import frame, mapped, outputs
from caudal.formats.outputs import Whose

IDENTITY = {"Accept-Encoding": "identity"}
MOST_REPLY_BYTES = 16 << 20
_MOST_INDEX_BYTES = 1 << 20  # head of a result: a title, a few names and numbers
_REPLY_SECONDS = 60.0
LINE_SECONDS = 15.0

Take = Callable[[httpx.Response], bytes]


class Body:
    """The received part of a body, from its beginning."""

    def __init__(self, answer: httpx.Response) -> None:
        coding = answer.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise FormatError(f"sent a body compressed as {coding[:40]!r}, which was not requested")
        self._pieces = answer.iter_raw()
        self._arrived = bytearray()

    def read(self, offset: int, length: int) -> bytes:
        """Return a range of the body; shorter if the body ends before."""
        self.receive(offset + length)
        return bytes(self._arrived[offset : offset + length])

    def receive(self, size: int) -> int:
        """Wait for `size` bytes. Return how many have arrived: maybe more, or fewer at the end."""
        while len(self._arrived) < size and (piece := next(self._pieces, None)) is not None:
            self._arrived += piece
        return len(self._arrived)

    def pieces(self) -> Iterator[bytes]:
        """Return an iterator of the next pieces, which are not kept."""
        return self._pieces

    def whole(self) -> bytes:
        """Return everything that has arrived."""
        return bytes(self._arrived)


def take_reply(answer: httpx.Response) -> bytes:
    """Read a whole small body."""
    body, since, size = Body(answer), time.monotonic(), 0
    while (now := body.receive(size + 1)) > size:
        size = now
        if size > MOST_REPLY_BYTES:
            raise FormatError(f"sent a reply of more than {MOST_REPLY_BYTES >> 20} MiB")
        if time.monotonic() - since > _REPLY_SECONDS:
            raise FormatError(f"took more than {_REPLY_SECONDS:g} seconds for a reply")
    return body.whole()


def take_result(whose: Whose) -> Take:
    """Return a reader of the result of one query in one run of a job (formats/outputs.py)."""

    def take(answer: httpx.Response) -> bytes:
        body, name = Body(answer), _name(whose)
        head, index = _described(body.read, whose)
        size = index.size(len(head))
        _check_size(answer, size, name)
        found = body.receive(size + 1)
        if found != size:
            told = "more" if found > size else f"only {found}"
            raise FormatError(f"{name} should have {size} bytes, but has {told}")
        if not index.error:
            mapped.read_stream(body.read, len(head), index.rows, name)
        return body.whole()

    return take


def check_result(data: bytes, whose: Whose) -> None:
    """Check a result that came with another reply, as `take_result` does."""
    name, read = _name(whose), frame.of_bytes(data)
    head, index = _described(read, whose)
    if (size := index.size(len(head))) != len(data):
        raise FormatError(f"{name} should have {size} bytes, but has {len(data)}")
    if not index.error:
        mapped.read_stream(read, len(head), index.rows, name)


def _name(whose: Whose) -> str:
    return f"what it sent as the result of {whose.query}"


def _described(read: frame.Read, whose: Whose) -> tuple[bytes, outputs.ResultHeader]:
    """Return the checked head of a result, and its header."""
    head = outputs.result_head(read, whose, _name(whose), _MOST_INDEX_BYTES)
    return head, outputs.describe_result(head, _name(whose))


def _check_size(answer: httpx.Response, size: int, name: str) -> None:
    announced = answer.headers.get("content-length", str(size))
    if announced != str(size):
        raise FormatError(
            f"{name} should have {size} bytes, but Content-Length is {announced[:20]}"
        )
    if size > memory_bytes():
        raise FormatError(f"{name} claims {size} bytes, more than this machine can hold")


def memory_bytes() -> int:
    """Return the size of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def lines_of(answer: httpx.Response, most: int) -> Iterator[str]:
    """Yield the lines of a stream that may never end; refuse lines longer than `most` bytes."""
    rest, pace = bytearray(), Pace(LINE_SECONDS)
    for piece in Body(answer).pieces():
        *whole, last = piece.split(b"\n")
        for end in whole:
            yield (bytes(rest) + end).removesuffix(b"\r").decode("utf-8", "replace")
            rest.clear()
        rest += last
        if not rest or whole:
            pace.begin()
        pace.note(len(piece))
        _require_pace(pace)
        if len(rest) > most:
            raise FormatError(f"sent a line of more than {most >> 20} MiB")


def _require_pace(pace: Pace) -> None:
    try:
        pace.left()
    except httpcore.ReadTimeout as error:
        raise httpx.ReadTimeout(str(error)) from None
