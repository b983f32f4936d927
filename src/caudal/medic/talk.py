"""The protocol of medics among each other and with the command line, over TCP."""

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import Awaitable, Callable

import msgspec

from caudal.decoding import json_decoder
from caudal.formats.frame import JSON_ERRORS
from caudal.formats.medic_status import FaultKind, StatusReply
from caudal.medic.election import MessageKind as Word
from caudal.process.wire import FRAME_MOST, LENGTH_BYTES, NONCE_BYTES, Frames, Seal

CONNECT_SECONDS = 1.0
STRANGER_SECONDS = 2.0  # until the first message that verifies
_STRANGERS_MOST, _VISITORS_MOST = 32, 256  # connections before and after a verified message
_STRANGER_BYTES = 1_024  # of a first frame: messages of medics and of `caudal status` are short
_WAITING_MOST = 64
_UNDELIVERED_MS = 3_000
_FRESH_SECONDS = 3.0  # what waited longer for its connection is not sent any more


class ElectionWord(msgspec.Struct, frozen=True, tag="say"):
    """A message of the election (medic/election.py)."""

    word: Word
    sender: int
    to: int
    term: int


class StartOrder(msgspec.Struct, frozen=True, tag="start"):
    """The leader's order: start this process of your host, unless one newer than `dead` runs.

    It may arrive late, so its receiver executes it only if it finds the process dead, too
    (supervision.py, rule 6), knows of no election after the leader's, and sent the heartbeat that
    it names a few seconds ago at most (order_age.py). The sender drops one that waited too long for
    a connection, and the kernel one that it cannot deliver (MedicLink).
    """

    name: str
    dead: int
    term: int | None = None  # of the leader; None from a medic of an earlier version
    heard: tuple[int, int] | None = None  # the receiver's newest heartbeat; None likewise


class StrikeOrder(msgspec.Struct, frozen=True, tag="strike"):
    """A request to kill or freeze a process of the medic's host, if its cluster allows chaos.

    It names the incarnation that it means. So a repeated request never hits the next one.
    """

    name: str
    incarnation: int
    fault: FaultKind


class StrikeReply(msgspec.Struct, frozen=True, tag="struck"):
    """The answer: empty if the process was hit, or why it was not."""

    refusal: str = ""


class StatusRequest(msgspec.Struct, frozen=True, tag="ask"):
    """A request for the status of all processes."""


Words = ElectionWord | StartOrder | StatusRequest | StatusReply | StrikeOrder | StrikeReply
Answer = Callable[[Words], Awaitable[Words | None]]
Notice = Callable[[str], None]  # of the address that sent a message which does not verify
_DECODER: msgspec.json.Decoder[Words] = json_decoder(Words)


class Visits:
    """Connections that others opened.

    A peer is unknown until it proves that it knows the secret. An unknown peer may send only a
    little and has little time. The oldest unknown connection is closed for the newest, so that
    silent connections keep nobody out. Silence is no offence, but what does not verify is told.
    """

    def __init__(self, seal: Seal, answer: Answer, notice: Notice) -> None:
        self._seal = seal
        self._answer = answer
        self._notice = notice
        self._strangers: dict[asyncio.StreamWriter, None] = {}  # oldest first
        self._known = 0

    async def visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection from beginning to end."""
        self._make_room()
        self._strangers[writer] = None
        try:
            # A medic that ends cancels its connections; asyncio would log each one as an error.
            with contextlib.suppress(OSError, EOFError, TimeoutError, asyncio.CancelledError):
                await self._converse(reader, writer)
        finally:
            self._strangers.pop(writer, None)
            with contextlib.suppress(OSError):
                writer.transport.abort()

    def _make_room(self) -> None:
        while len(self._strangers) >= _STRANGERS_MOST:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Exchange messages. Each connection has its own nonce, so nothing can be replayed."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        writer.write(nonce)
        heard, said = (Frames(self._seal, nonce, way) for way in (b"there", b"back"))
        async with asyncio.timeout(STRANGER_SECONDS):
            words = await self._heard(reader, writer, heard, _STRANGER_BYTES)
        self._strangers.pop(writer, None)
        if words is None or self._known >= _VISITORS_MOST:
            return
        self._known += 1
        try:
            while words is not None:
                reply = await self._answer(words)
                if reply is not None:
                    writer.write(said.close(msgspec.json.encode(reply)))
                    await writer.drain()
                words = await self._heard(reader, writer, heard, FRAME_MOST)
        finally:
            self._known -= 1

    async def _heard(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: Frames, most: int
    ) -> Words | None:
        """Return the next message, as `_read` does, and tell of one that does not verify."""
        payload = await _payload(reader, frames, most)
        if payload is None:
            sender = writer.get_extra_info("peername")
            self._notice(sender[0] if sender else "unknown")
            return None
        return _decoded(payload)


def _nobody(address: str) -> None:
    """Take no notice."""


async def serve(
    address: str, port: int, seal: Seal, answer: Answer, notice: Notice = _nobody
) -> asyncio.Server:
    """Listen. The read buffer is small: data of unknown peers waits in the kernel, not here."""
    visits = Visits(seal, answer, notice)
    return await asyncio.start_server(visits.visited, address, port, limit=_STRANGER_BYTES)


async def _read(reader: asyncio.StreamReader, frames: Frames) -> Words | None:
    """Return the next message; None if it does not verify or has an unknown form."""
    payload = await _payload(reader, frames, FRAME_MOST)
    return None if payload is None else _decoded(payload)


async def _payload(reader: asyncio.StreamReader, frames: Frames, most: int) -> bytes | None:
    """Return what the next message holds; None if it does not verify, or is longer than `most`."""
    length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    return None if length > most else frames.open(await reader.readexactly(length))


def _decoded(payload: bytes) -> Words | None:
    try:
        words: Words = _DECODER.decode(payload)
        return words
    except JSON_ERRORS:
        return None


class MedicLink:
    """The connection to one other medic. What cannot be sent soon is dropped; medics repeat it."""

    def __init__(
        self, address: str, port: int, seal: Seal, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._where = (address, port)
        self._seal = seal
        self._clock = clock
        self._waiting: asyncio.Queue[tuple[float, Words]] = asyncio.Queue(_WAITING_MOST)

    def say(self, words: Words) -> None:
        if self._waiting.full():
            self._waiting.get_nowait()
        self._waiting.put_nowait((self._clock(), words))

    async def _next(self) -> Words:
        """Return the next message that is not too old to be sent."""
        while True:
            said, words = await self._waiting.get()
            if self._clock() - said <= _FRESH_SECONDS:
                return words

    async def keep(self) -> None:
        """Send queued messages for ever; reconnect for the next one if the connection broke."""
        while True:
            words = await self._next()
            with contextlib.suppress(OSError, EOFError, TimeoutError):
                await self._talk(words)

    async def _talk(self, words: Words) -> None:
        """Send over one connection until it breaks. The other side sends only the nonce."""
        connecting = asyncio.open_connection(*self._where)
        reader, writer = await asyncio.wait_for(connecting, CONNECT_SECONDS)
        try:
            nonce = await asyncio.wait_for(reader.readexactly(NONCE_BYTES), CONNECT_SECONDS)
            frames = Frames(self._seal, nonce, b"there")
            _limit_wait(writer)
            while not reader.at_eof():
                writer.write(frames.close(msgspec.json.encode(words)))
                async with asyncio.timeout(CONNECT_SECONDS):
                    await writer.drain()
                words = await self._next()
        finally:
            writer.close()


def _limit_wait(writer: asyncio.StreamWriter) -> None:
    """Break the connection if the kernel cannot deliver: a message must not wait for long in it."""
    connection = writer.get_extra_info("socket")
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # only Linux has it
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNDELIVERED_MS)


async def converse(
    address: str, port: int, seal: Seal, words: Words, seconds: float = 2.0
) -> Words | None:
    """Say one thing to a medic and return its reply; None if it does not answer."""

    async def conversation() -> Words | None:
        reader, writer = await asyncio.open_connection(address, port)
        try:
            nonce = await reader.readexactly(NONCE_BYTES)
            writer.write(Frames(seal, nonce, b"there").close(msgspec.json.encode(words)))
            return await _read(reader, Frames(seal, nonce, b"back"))
        finally:
            writer.close()

    with contextlib.suppress(OSError, EOFError, TimeoutError):
        return await asyncio.wait_for(conversation(), seconds)
    return None


async def hangs_up(address: str, port: int, seal: Seal, seconds: float = 2.0) -> bool:
    """Return whether a medic listens there that does not verify our messages."""
    with contextlib.suppress(OSError, EOFError, TimeoutError):
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                nonce = await reader.readexactly(NONCE_BYTES)
                asked = msgspec.json.encode(StatusRequest())
                writer.write(Frames(seal, nonce, b"there").close(asked))
                return not await reader.read(1)
            finally:
                writer.close()
    return False


async def ask(address: str, port: int, seal: Seal, seconds: float = 2.0) -> StatusReply | None:
    """Return one medic's view of all processes; None if it does not answer."""
    reply = await converse(address, port, seal, StatusRequest(), seconds)
    return reply if isinstance(reply, StatusReply) else None
