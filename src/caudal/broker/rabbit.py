"""RabbitMQ behind the broker port: synchronous calls into one asyncio loop on its own thread.

Rules
1. Messages are persistent, mandatory and confirmed. `publish` raises if no queue accepts a
   message, if a lane is full or if a confirm does not arrive in time. Several messages wait for
   their confirms together.
2. A consumer holds only the messages that `take` returned. It gets one message per call
   (basic.get) and none in advance. With a prefetch, even of 1 per lane, up to six tasks would wait
   behind a long one while other workers are idle, and a kill would raise the delivery count of all
   of them.
3. Getting a message from an empty quorum queue costs a write to the log of the queue (measured for
   six lanes: 22 ms and 26 KB on the broker's disk, against 2 ms and no write for their depths). So
   a consumer reads the depths first, and gets only from lanes that have messages. Depths that are
   young, and deep enough for several consumers (`KnownDepths`), are used again: a read of all lanes
   costs consumer and broker more than a message.
4. An idle consumer checks less often, down to five times a second (about 1% of a core). Between
   two checks `take` waits for a short time, and returns None if the next check is not due by then.
5. The publisher and each consumer have a connection of their own: a broker short of memory blocks
   connections that publish, and acknowledgements must not wait behind them.
6. If the connection dies after an acknowledgement, the broker may deliver the message again, to
   any consumer. This is no error, so nothing is raised.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.exceptions import DeliveryError, PublishError

from caudal.broker.link import BrokerLink, BrokerSession, RabbitSettings, SessionError, depths
from caudal.broker.loop import LoopThread
from caudal.broker.port import BrokerError, Delivery, LaneFullError
from caudal.broker.topology import LAST_SECONDS, earlier_deliveries, queue_name
from caudal.errors import FormatError
from caudal.formats import message as message_format
from caudal.formats.keys import Lane, Message
from caudal.process.logs import fields

_TOGETHER = 512  # messages that are published in one call with one time limit
_DEPTHS_SECONDS = 0.25  # maximum age of cached depths
_OTHERS = 3  # messages that other consumers take while one takes one, as a guess
_LOOK_SECONDS, _LOOK_MOST_SECONDS = 0.01, 0.2  # pauses between checks of empty lanes
_WAIT_SECONDS = 0.09  # of `take`; also delays a stop
_LOOK_GROWTH = 1.25  # the next small job of a client comes after some 40 milliseconds

Settle = Callable[[AbstractIncomingMessage], Awaitable[None]]

_log = logging.getLogger(__name__)


class RabbitBroker:
    """A broker for any number of threads."""

    def __init__(self, settings: RabbitSettings, name: str = "") -> None:
        self._settings = settings
        self._name = name
        self._loop = LoopThread(settings.answer_seconds + 5)
        self._link = BrokerLink(settings, f"{name} publisher".strip())
        self._window = asyncio.Semaphore(settings.window)
        self._depths: tuple[float, Mapping[Lane, int]] | None = None
        self._consumers: list[RabbitConsumer] = []
        self._lock = threading.Lock()
        self.dropped = 0

    @property
    def connected(self) -> bool:
        """Whether all consumers are connected, or the publisher if there are no consumers."""
        links = [one.link for one in self._open_consumers()] or [self._link]
        return all(link.connected for link in links)

    def publish(self, messages: Sequence[Message]) -> None:
        """See the port."""
        for first in range(0, len(messages), _TOGETHER):
            some = messages[first : first + _TOGETHER]
            self._loop.call(self._link.ask(partial(self._publish, some)))

    def depths(self) -> Mapping[Lane, int]:
        """See the port.

        The result may be a quarter of a second old. Messages that this broker published are
        included.
        """
        known = self._depths
        if known is not None and time.monotonic() - known[0] < _DEPTHS_SECONDS:
            return known[1]
        asked = time.monotonic()
        prefix = self._settings.prefix
        found = self._loop.call(self._link.ask(lambda session: depths(session, prefix, Lane)))
        self._depths = asked, found
        return found

    def consume(
        self, lanes: Sequence[Lane] = tuple(Lane), last: Sequence[Lane] = ()
    ) -> "RabbitConsumer":
        """See the port."""
        consumer = RabbitConsumer(self._settings, self._loop, self._name, lanes, last)
        consumer.dropping = self._drop
        with self._lock:
            self._consumers = [one for one in self._consumers if not one.closed] + [consumer]
        return consumer

    def close(self) -> None:
        """See the port."""
        for consumer in self._open_consumers():
            consumer.close()
        with suppress(BrokerError):
            self._loop.call(self._link.close())
        self._loop.close()

    def _drop(self) -> None:
        """Count a dropped message. Runs only on the loop, so it needs no lock."""
        self.dropped += 1

    def _open_consumers(self) -> list["RabbitConsumer"]:
        with self._lock:
            return [one for one in self._consumers if not one.closed]

    async def _publish(self, messages: Sequence[Message], session: BrokerSession) -> None:
        endings = await asyncio.gather(
            *(self._publish_one(session, message) for message in messages), return_exceptions=True
        )
        self._count(messages)
        errors = [one for one in endings if isinstance(one, BaseException)]
        for error in errors:
            if not isinstance(error, LaneFullError):
                raise error
        if errors:
            raise errors[0]

    def _count(self, messages: Sequence[Message]) -> None:
        """Add published messages to the cached depths.

        Reading the depths after every message would cost a gateway more than publishing it.
        """
        known = self._depths
        if known is not None:
            more = Counter(message.lane for message in messages)
            self._depths = known[0], {lane: count + more[lane] for lane, count in known[1].items()}

    async def _publish_one(self, session: BrokerSession, message: Message) -> None:
        async with self._window:
            try:
                await session.work.default_exchange.publish(
                    aio_pika.Message(
                        message_format.encode(message),
                        content_type="application/json",
                        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
                    ),
                    routing_key=queue_name(self._settings.prefix, message.lane),
                    mandatory=True,
                )
            except PublishError as error:  # the broker returned the message
                raise SessionError(f"RabbitMQ has no queue for lane {message.lane}") from error
            except DeliveryError as error:
                await self._require_full(session, message.lane)
                raise LaneFullError(f"lane {message.lane} is full: try again later") from error

    async def _require_full(self, session: BrokerSession, lane: Lane) -> None:
        """Raise SessionError if a lane refuses messages although it is not full.

        This happens when the leader of its queue dies at the moment this channel first uses the
        queue. The channel then refuses for ever, and a new channel works (seen with 3.10).
        """
        waiting = await depths(session, self._settings.prefix, [lane])
        if waiting[lane] < self._settings.lane_limit:
            raise SessionError(f"RabbitMQ refuses messages for lane {lane}")


class RabbitConsumer:
    """A consumer that takes from its lanes in turn. Not for use by two threads at once."""

    def __init__(
        self,
        settings: RabbitSettings,
        loop: LoopThread,
        name: str,
        lanes: Sequence[Lane],
        last: Sequence[Lane] = (),
    ) -> None:
        self._settings = settings
        self._loop = loop
        self.link = BrokerLink(settings, f"{name} consumer".strip())
        self.closed = False
        self.dropping: Callable[[], None] = lambda: None  # called for each message that is removed
        self._turns = list(lanes)
        self._last = list(last)
        self._worked = time.monotonic()
        self._tags = count()
        self._held: dict[int, AbstractIncomingMessage] = {}
        self._pause, self._next_look = _LOOK_SECONDS, 0.0
        self._known = KnownDepths()

    def take(self) -> Delivery | None:
        """See the port."""
        left = self._next_look - time.monotonic()
        if left > 0.0:
            time.sleep(min(left, _WAIT_SECONDS))
            if left > _WAIT_SECONDS:
                return None
        delivery = self._loop.call(self.link.ask(self._take))
        if delivery is None:
            self._next_look = time.monotonic() + self._pause
            self._pause = min(self._pause * _LOOK_GROWTH, _LOOK_MOST_SECONDS)
        else:
            self._pause = _LOOK_SECONDS
        return delivery

    def acknowledge(self, delivery: Delivery) -> None:
        """See the port."""
        self._settle(delivery, lambda held: held.ack())

    def hand_back(self, delivery: Delivery) -> None:
        """See the port."""
        self._settle(delivery, lambda held: held.nack(requeue=True))

    def close(self) -> None:
        """See the port."""
        self.closed = True
        self._held.clear()
        with suppress(BrokerError):
            self._loop.call(self.link.close())

    def _settle(self, delivery: Delivery, act: Settle) -> None:
        """Acknowledge or hand back a message. Ignore errors (rule 6)."""
        if delivery.message.lane not in self._last:
            self._worked = time.monotonic()
        held = self._held.pop(delivery.tag, None)
        if held is not None:
            with suppress(BrokerError):
                self._loop.call(self._settled(held, act))

    async def _settled(self, held: AbstractIncomingMessage, act: Settle) -> None:
        with suppress(Exception, asyncio.CancelledError):
            async with asyncio.timeout(self._settings.answer_seconds):
                await act(held)

    async def _take(self, session: BrokerSession) -> Delivery | None:
        now = time.monotonic()
        lanes = (*self._turns, *(self._last if now - self._worked >= LAST_SECONDS else ()))
        if delivery := await self._take_from(session, self._known.lanes(lanes, now)):
            return delivery
        self._known = KnownDepths(await depths(session, self._settings.prefix, sorted(lanes)), now)
        return await self._take_from(session, self._known.lanes(lanes, now))

    async def _take_from(self, session: BrokerSession, lanes: Sequence[Lane]) -> Delivery | None:
        """Take from the first of these lanes that has a message. Its next turn comes last."""
        for lane in lanes:
            if lane in self._turns:
                self._turns.remove(lane)
                self._turns.append(lane)
            delivery = await self._get(session, lane)
            self._known.note(lane, taken=delivery is not None)
            if delivery:
                return delivery
        return None

    async def _get(self, session: BrokerSession, lane: Lane) -> Delivery | None:
        """Return the next message of a lane that can be decoded. Remove the others."""
        name = queue_name(self._settings.prefix, lane)
        queue = await session.work.get_queue(name, ensure=False)
        while (found := await queue.get(fail=False)) is not None:
            try:
                message = message_format.decode(found.body)
            except FormatError as error:
                _log.warning("removed a message", extra=fields(queue=name, reason=str(error)))
                self.dropping()
                await found.ack()
                continue
            tag = next(self._tags)
            self._held[tag] = found
            return Delivery(tag, message, earlier_deliveries(found.headers) + 1)
        return None


class KnownDepths:
    """The depths of lanes as they were read at some time, less what was probably taken since."""

    def __init__(self, found: Mapping[Lane, int] | None = None, since: float = 0.0) -> None:
        self._left = dict(found or {})
        self._since = since

    def lanes(self, lanes: Sequence[Lane], now: float) -> list[Lane]:
        """Return those of the lanes that probably have messages; none if that is long ago."""
        if now - self._since >= _DEPTHS_SECONDS:
            return []
        return [lane for lane in lanes if self._left.get(lane, 0) > 0]

    def note(self, lane: Lane, *, taken: bool) -> None:
        """Note that a message was taken, or that there was none.

        >>> known = KnownDepths({Lane.FIRST: 5, Lane.FOLD: 0}, since=1.0)
        >>> known.lanes([Lane.FIRST, Lane.FOLD], now=1.1)
        [<Lane.FIRST: 'map-0'>]
        >>> known.note(Lane.FIRST, taken=True)
        >>> known.lanes([Lane.FIRST], now=1.1)
        [<Lane.FIRST: 'map-0'>]
        >>> known.note(Lane.FIRST, taken=True)
        >>> known.lanes([Lane.FIRST], now=1.1)
        []
        """
        self._left[lane] = self._left.get(lane, 0) - 1 - _OTHERS if taken else 0
