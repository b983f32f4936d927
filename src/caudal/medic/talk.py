"""What medics say to each other and to the command line, over TCP."""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable

import msgspec

from caudal.core.election import Kind as Word
from caudal.formats.frame import JSON_ERRORS
from caudal.process.wire import FRAME_MOST, LENGTH_BYTES, NONCE_BYTES, Frames, Seal

CONNECT_SECONDS = 1.0
_WAITING_MOST = 64


class Say(msgspec.Struct, frozen=True, tag="say"):
    """A message of the election (core/election.py)."""

    word: Word
    sender: int
    to: int
    term: int


class Start(msgspec.Struct, frozen=True, tag="start"):
    """The leader's order: start this process of your host, unless one newer than `dead` runs."""

    name: str
    dead: int


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """How is everyone?"""


class ProcessStatus(msgspec.Struct, frozen=True):
    """One process, as the medic that was asked sees it."""

    name: str
    kind: str
    host: str
    state: str
    incarnation: int
    restarts: int
    heard_seconds: float | None  # since its last heartbeat
    progress: int
    memory: int
    pid: int
    detail: str
    address: str


class Told(msgspec.Struct, frozen=True, tag="told"):
    """The answer: who answers, who leads by its word, and everyone."""

    medic: str
    role: str
    term: int
    leader: str
    processes: list[ProcessStatus]


Words = Say | Start | Ask | Told
Answer = Callable[[Words], Awaitable[Words | None]]
_DECODER = msgspec.json.Decoder(Words)


async def serve(address: str, port: int, seal: Seal, answer: Answer) -> asyncio.Server:
    """Listen; every connection is given a number of its own, so that nothing can be replayed."""

    async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonce = secrets.token_bytes(NONCE_BYTES)
        writer.write(nonce)
        heard, said = Frames(seal, nonce, b"there"), Frames(seal, nonce, b"back")
        # A medic that ends cancels its conversations; asyncio would log each as an error.
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            while (words := await _read(reader, heard)) is not None:
                reply = await answer(words)
                if reply is not None:
                    writer.write(said.close(msgspec.json.encode(reply)))
                    await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()

    return await asyncio.start_server(visited, address, port, limit=FRAME_MOST)


async def _read(reader: asyncio.StreamReader, frames: Frames) -> Words | None:
    """The next words; None if they end, do not verify, or are not understood."""
    length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    if length > FRAME_MOST:
        return None
    payload = frames.open(await reader.readexactly(length))
    if payload is None:
        return None
    try:
        words: Words = _DECODER.decode(payload)
        return words
    except JSON_ERRORS:
        return None


class Link:
    """The way to one other medic. What cannot be said now is dropped: it will be said again."""

    def __init__(self, address: str, port: int, seal: Seal) -> None:
        self._where = (address, port)
        self._seal = seal
        self._waiting: asyncio.Queue[Words] = asyncio.Queue(_WAITING_MOST)

    def say(self, words: Words) -> None:
        if self._waiting.full():
            self._waiting.get_nowait()
        self._waiting.put_nowait(words)

    async def keep(self) -> None:
        """Send what waits, for ever; a connection that broke is opened again for the next words."""
        while True:
            words = await self._waiting.get()
            with contextlib.suppress(OSError, EOFError, TimeoutError):
                await self._talk(words)

    async def _talk(self, words: Words) -> None:
        """Over one connection, until it breaks. The other side never speaks: words mean its end."""
        connecting = asyncio.open_connection(*self._where)
        reader, writer = await asyncio.wait_for(connecting, CONNECT_SECONDS)
        try:
            nonce = await asyncio.wait_for(reader.readexactly(NONCE_BYTES), CONNECT_SECONDS)
            frames = Frames(self._seal, nonce, b"there")
            while not reader.at_eof():
                writer.write(frames.close(msgspec.json.encode(words)))
                await asyncio.wait_for(writer.drain(), CONNECT_SECONDS)
                words = await self._waiting.get()
        finally:
            writer.close()


async def ask(address: str, port: int, seal: Seal, seconds: float = 2.0) -> Told | None:
    """How one medic sees everyone; None if it does not answer."""

    async def conversation() -> Told | None:
        reader, writer = await asyncio.open_connection(address, port)
        try:
            nonce = await reader.readexactly(NONCE_BYTES)
            writer.write(Frames(seal, nonce, b"there").close(msgspec.json.encode(Ask())))
            words = await _read(reader, Frames(seal, nonce, b"back"))
            return words if isinstance(words, Told) else None
        finally:
            writer.close()

    with contextlib.suppress(OSError, EOFError, TimeoutError):
        return await asyncio.wait_for(conversation(), seconds)
    return None
