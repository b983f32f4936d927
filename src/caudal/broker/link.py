"""One connection to RabbitMQ that reconnects automatically.

Rules
1. A link has one session or none. A session is a connection with its two channels and with every
   queue declared. After any error of unknown effect the whole session is dropped. So a broker that
   lost its data gets its queues again from the next session.
2. A session is opened when a caller needs one. After a failure the next attempt waits; the pause
   doubles up to a bound. Calls during the pause fail at once with a BrokerError.
3. Every exception of a library means the same: the outcome is unknown. It becomes a BrokerError.
4. A change of state is logged once, not at every attempt. Passwords are never logged.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import ChannelPreconditionFailed, ProbableAuthenticationError

from caudal.broker.address import Address
from caudal.broker.backoff import pause_seconds
from caudal.broker.port import BrokerError
from caudal.broker.topology import LANE_LIMIT, PREFIX, queue_arguments, queue_name
from caudal.errors import BrokerLoginError
from caudal.formats.keys import Lane
from caudal.process.logs import fields

Value = TypeVar("Value")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RabbitSettings:
    """The settings for a broker: one address, or the addresses of the nodes of one cluster."""

    addresses: tuple[Address, ...]
    prefix: str = PREFIX
    heartbeat_seconds: int = 1  # a frozen worker loses its tasks after 2.7 s (with 2: 5.7 s)
    connect_seconds: float = 5.0  # per address
    answer_seconds: float = 15.0  # for any request, including connecting
    window: int = 64  # messages published and not yet confirmed
    lane_limit: int = LANE_LIMIT  # messages in a lane of map tasks


@dataclass(frozen=True)
class BrokerSession:
    """An open connection with its channels.

    AMQP closes a channel on 404, so passive declares use a channel of their own.
    """

    address: Address
    connection: AbstractConnection
    work: AbstractChannel  # publishes with confirms, or gets and acknowledges
    look: AbstractChannel  # declares, actively and passively

    @property
    def usable(self) -> bool:
        return not (self.connection.is_closed or self.work.is_closed or self.look.is_closed)


class SessionError(BrokerError):
    """The broker answered, but this session cannot be used any more. A new session may work."""


class BrokerLink:
    """A connection to the broker for one purpose.

    Use it only on the loop. `connected` may be read by other threads.
    """

    def __init__(self, settings: RabbitSettings, purpose: str) -> None:
        self._settings = settings
        self._purpose = purpose
        self._chance = random.Random()
        self._addresses = list(settings.addresses)
        self._chance.shuffle(self._addresses)  # spreads workers over the nodes
        self._session: BrokerSession | None = None
        self._lock = asyncio.Lock()
        self._failures, self._not_before = 0, 0.0
        self._new = True  # not connected before
        self._away: _Away | None = None  # the reason, if it was already logged
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def connected(self) -> bool:
        session = self._session
        return session is not None and session.usable

    async def ask(self, act: Callable[[BrokerSession], Awaitable[Value]]) -> Value:
        """Run `act` with a session, in bounded time.

        A SessionError, or any error that is not a BrokerError, drops the session. Any other
        BrokerError of `act` leaves it open.
        """
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                session = await self._ready()
                try:
                    return await act(session)
                except BaseException as error:
                    if isinstance(error, SessionError) or not isinstance(error, BrokerError):
                        self.drop(session)
                    raise
        except BrokerError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            raise BrokerError(self._told(error)) from error

    def drop(self, session: BrokerSession) -> None:
        """Stop using a session and close it. The next session declares every queue again."""
        if self._session is session:
            self._session = None
        closing = asyncio.create_task(_close(session.connection))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        if self._session is not None:
            self.drop(self._session)
        if self._closing:
            await asyncio.wait(self._closing)

    async def _ready(self) -> BrokerSession:
        async with self._lock:
            if self._session is not None and self._session.usable:
                return self._session
            if self._session is not None:
                self._note_away(_Away("the connection was lost"))
                self.drop(self._session)
            self._session = await self._connect()
            return self._session

    async def _connect(self) -> BrokerSession:
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before and self._away is not None:
            raise self._away.error()
        failures: list[_Away] = []
        for address in list(self._addresses):
            try:
                session = await self._open(address)
            except (Exception, asyncio.CancelledError) as error:
                if (task := asyncio.current_task()) and task.cancelling():
                    raise
                failures.append(_Away.of(error, address))
                self._addresses.append(self._addresses.pop(0))
                continue
            self._note_back(address)
            return session
        self._failures += 1
        self._not_before = loop.time() + pause_seconds(self._failures, self._chance)
        away = max(failures, key=lambda one: one.is_refused)
        self._note_away(away)
        raise away.error()

    async def _open(self, address: Address) -> BrokerSession:
        settings = self._settings
        connection = await aio_pika.connect(
            address.url(heartbeat=settings.heartbeat_seconds),
            timeout=settings.connect_seconds,
            client_properties={"connection_name": f"caudal {self._purpose}"},
            connection_class=LinkConnection,
        )
        try:
            async with asyncio.timeout(settings.answer_seconds):
                look = await self._declared(connection)
                work = await connection.channel(publisher_confirms=True, on_return_raises=True)
        except BaseException:
            await _close(connection)
            raise
        return BrokerSession(address, connection, work, look)

    async def _declared(self, connection: AbstractConnection) -> AbstractChannel:
        """Declare every queue. Return the channel.

        A queue that exists with other properties is used as it is.
        """
        server = _server_version(connection)
        look = await connection.channel()
        for lane in Lane:
            name = queue_name(self._settings.prefix, lane)
            arguments = queue_arguments(lane, server, self._settings.lane_limit)
            try:
                await look.declare_queue(name, durable=True, arguments=dict(arguments))
            except ChannelPreconditionFailed:
                _log.warning(
                    "a queue has other properties than this version declares: delete it to renew "
                    "it, no work is lost",
                    extra=fields(queue=name),
                )
                look = await connection.channel()
        return look

    def _note_away(self, away: "_Away") -> None:
        if self._away is None:
            _log.warning("RabbitMQ is away", extra=fields(link=self._purpose, reason=away.why))
        self._away = away

    def _note_back(self, address: Address) -> None:
        if self._away is not None or self._new:
            about = fields(link=self._purpose, address=str(address))
            _log.info("connected to RabbitMQ", extra=about)
        self._new, self._away, self._failures, self._not_before = False, None, 0, 0.0

    def _told(self, error: BaseException) -> str:
        return f"RabbitMQ did not confirm: {_cause(error, *self._addresses)}"


@dataclass(frozen=True)
class _Away:
    """Why no server can be used."""

    why: str
    is_refused: bool = False  # by a server that does not know this user and password

    @classmethod
    def of(cls, error: BaseException, address: Address) -> "_Away":
        why = f"{address}: {_cause(error, address)}"
        return cls(why, isinstance(error, ProbableAuthenticationError))

    def error(self) -> BrokerError:
        kind = BrokerLoginError if self.is_refused else BrokerError
        return kind(f"RabbitMQ is away: {self.why}")


class LinkConnection(aio_pika.Connection):
    """A connection that is closed by this module only.

    The destructor of aio-pika closes one that could not connect, in whatever thread collects it;
    without a running loop that ends in a warning about a coroutine that was never awaited.
    """

    def __del__(self) -> None:
        pass


async def depths(session: BrokerSession, prefix: str, lanes: Iterable[Lane]) -> dict[Lane, int]:
    """Return the number of messages that wait in each lane.

    Unlike getting a message, this costs the broker no write.
    """
    found = {}
    for lane in lanes:
        queue = await session.look.declare_queue(queue_name(prefix, lane), passive=True)
        found[lane] = queue.declaration_result.message_count or 0
    return found


async def _close(connection: AbstractConnection) -> None:
    with suppress(Exception, asyncio.CancelledError):
        async with asyncio.timeout(5):
            await connection.close()


def _server_version(connection: AbstractConnection) -> str:
    transport = connection.transport
    properties = transport.connection.server_properties if transport else {}
    return str(properties.get("version", ""))


def _cause(error: BaseException, *addresses: Address) -> str:
    """Return the error as one line without a password."""
    if isinstance(error, ProbableAuthenticationError):
        return "the server refuses this user and password"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = " ".join(str(error).split()) or type(error).__name__
    for address in addresses:
        text = address.censored(text)
    return text
