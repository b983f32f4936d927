"""RabbitMQ killed, frozen, wiped, full, wrong: nothing confirmed is lost, everything comes back."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import aio_pika
import pytest
from tests.harness import broker_holder
from tests.harness.freezing import freeze
from tests.harness.rabbit import PASSWORD, Node, require_rabbit, started, started_three
from tests.harness.rabbit import rabbit as rabbit
from tests.harness.rabbit import rabbit_url as rabbit_url
from tests.harness.waiting import GUARD_SECONDS, until

from caudal.broker import rabbit as rabbit_broker
from caudal.broker.link import depths
from caudal.broker.open_broker import open_broker, read_settings
from caudal.broker.port import BrokerError, Consumer, Delivery, LaneFullError, OpenedBroker
from caudal.broker.rabbit import RabbitBroker
from caudal.broker.topology import queue_name
from caudal.errors import BrokerLoginError
from caudal.formats import message as message_format
from caudal.formats.keys import Lane, Message, Task

FINISH = Message("j", "r", Task("finish", "q"))


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node of our own to harm; alive and ready when a test begins."""
    require_rabbit()
    with started(tmp_path_factory.mktemp("victim")) as node:
        yield node


@pytest.fixture
def broker(victim: Node, request: pytest.FixtureRequest) -> Iterator[OpenedBroker]:
    """A broker on the victim."""
    opened = open_broker(f"{victim.url}?prefix={request.node.name}")
    yield opened
    opened.close()


@pytest.fixture
def calm(rabbit_url: str) -> Iterator[OpenedBroker]:
    """A broker on the shared node, which nobody harms."""
    opened = open_broker(rabbit_url)
    yield opened
    opened.close()


def maps(*numbers: int) -> list[Message]:
    return [Message("j", "r", Task("map", "t", number)) for number in numbers]


def taken(consumer: Consumer) -> Delivery:
    return until(consumer.take, BrokerError)


def published(broker: OpenedBroker, *numbers: int) -> bool:
    broker.publish(maps(*numbers))
    return True


def admin(url: str, act: str, queue: str, body: bytes = b"") -> None:
    """Do to a queue what Caudal itself would never do."""

    async def go() -> None:
        async with await aio_pika.connect(url.split("?", maxsplit=1)[0]) as connection:
            channel = await connection.channel()
            if act == "delete":
                await channel.queue_delete(queue)
            elif act == "declare":
                await channel.declare_queue(queue, durable=True)
            else:
                await channel.default_exchange.publish(aio_pika.Message(body), queue)

    asyncio.run(go())


def accepted_until_full(broker: OpenedBroker) -> int:
    for accepted in range(50):
        try:
            broker.publish(maps(0))
        except LaneFullError:
            return accepted
    return 50


def prefix_of(url: str) -> str:
    return read_settings(url).prefix


@pytest.mark.long
def test_a_node_killed_while_publishing_loses_nothing_confirmed(
    victim: Node, broker: OpenedBroker
) -> None:
    confirmed: list[int] = []
    begun = threading.Event()

    def publish() -> None:
        for number in range(300):
            until(partial(published, broker, number), BrokerError)
            confirmed.append(number)
            if number == 50:
                begun.set()

    publisher = threading.Thread(target=publish)
    publisher.start()
    assert begun.wait(GUARD_SECONDS)
    victim.restart()
    publisher.join()
    consumer, found = broker.consume(), set[int]()
    while sum(until(broker.depths, BrokerError).values()):
        if delivery := consumer.take():
            found.add(delivery.message.task.number)
            consumer.acknowledge(delivery)
    assert found >= set(confirmed)
    assert confirmed == list(range(300))


def test_publisher_and_consumer_come_back_by_themselves(victim: Node, broker: OpenedBroker) -> None:
    broker.publish(maps(0, 1))
    consumer = broker.consume()
    held = taken(consumer)
    victim.restart()
    consumer.acknowledge(held)  # on a connection that has died: harmless
    again = taken(consumer)
    other = taken(consumer)
    assert {again.message.task.number, other.message.task.number} == {0, 1}
    assert until(lambda: published(broker, 2), BrokerError)
    assert taken(consumer).message.task.number == 2


@pytest.mark.long
def test_queues_are_declared_again_when_the_data_is_lost(
    victim: Node, broker: OpenedBroker
) -> None:
    broker.publish(maps(0))
    consumer = broker.consume()
    victim.wipe()
    with pytest.raises(BrokerError, match="RabbitMQ"):
        broker.publish(maps(1))
    victim.start()
    victim.wait_until_ready()
    assert until(lambda: published(broker, 2), BrokerError)
    assert taken(consumer).message.task.number == 2
    assert consumer.take() is None


@pytest.mark.long
def test_one_node_of_three_may_die(tmp_path: Path) -> None:
    require_rabbit()
    with started_three(tmp_path) as nodes:
        broker = open_broker(",".join(node.url for node in nodes))
        consumer = broker.consume()
        assert until(partial(published, broker, 0), BrokerError)
        nodes[0].kill()
        assert until(partial(published, broker, 1), BrokerError)
        nodes[0].start()
        nodes[0].wait_until_ready()
        nodes[1].kill()
        assert until(partial(published, broker, 2), BrokerError)
        found = set[int]()
        while found != {0, 1, 2}:
            delivery = taken(consumer)
            found.add(delivery.message.task.number)
            consumer.acknowledge(delivery)
        broker.close()


def test_a_frozen_node_is_an_error_in_bounded_time(victim: Node) -> None:
    settings = replace(read_settings(victim.url), prefix="frozen", answer_seconds=1.0)
    with closing(RabbitBroker(settings)) as broker:
        assert until(lambda: published(broker, 0), BrokerError)
        victim.freeze()
        try:
            for _ in range(2):
                with pytest.raises(BrokerError, match="no answer in time"):
                    broker.publish(maps(1))
        finally:
            victim.thaw()
        assert until(lambda: published(broker, 2), BrokerError)


def publish_until_refused(broker: RabbitBroker) -> None:
    """A node tells its connections in its own time that it takes nothing more."""
    while True:
        broker.publish(maps(1))


def test_a_node_low_on_disk_confirms_nothing_until_there_is_space(victim: Node) -> None:
    """What it has can be taken meanwhile."""
    settings = replace(read_settings(victim.url), prefix="low", answer_seconds=1.0)
    with closing(RabbitBroker(settings)) as broker:
        assert until(lambda: published(broker, 0), BrokerError)
        victim.want_free("100000GB")
        try:
            with pytest.raises(BrokerError, match="RabbitMQ did not confirm: no answer in time"):
                publish_until_refused(broker)
            assert taken(broker.consume([Lane.FIRST])).message.task.number == 0
        finally:
            victim.want_free("10MB")
        assert until(lambda: published(broker, 2), BrokerError)


@pytest.mark.parametrize("fate", ["killed", "frozen"])
def test_what_a_dead_or_frozen_consumer_held_goes_to_another(
    calm: OpenedBroker, rabbit_url: str, fate: str
) -> None:
    calm.publish(maps(0))
    script = [sys.executable, "-P", str(Path(broker_holder.__file__)), rabbit_url]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            consumer = calm.consume()
            assert consumer.take() is None
            if fate == "killed":
                holder.kill()
            else:
                freeze(holder.pid)
            again = taken(consumer)
            assert (again.message, again.count) == (maps(0)[0], 2)
        finally:
            holder.kill()


def test_unroutable_raises_and_the_queue_comes_back(calm: OpenedBroker, rabbit_url: str) -> None:
    calm.publish(maps(0))
    consumer = calm.consume()
    admin(rabbit_url, "delete", queue_name(prefix_of(rabbit_url), Lane.FIRST))
    with pytest.raises(BrokerError, match="no queue for lane map-0"):
        calm.publish(maps(0, 1, 70))
    calm.publish(maps(2))
    numbers = {taken(consumer).message.task.number for _ in range(2)}
    assert numbers == {2, 70}


def test_a_consumer_survives_the_loss_of_a_queue(calm: OpenedBroker, rabbit_url: str) -> None:
    consumer = calm.consume()
    calm.publish(maps(0))
    consumer.acknowledge(taken(consumer))
    admin(rabbit_url, "delete", queue_name(prefix_of(rabbit_url), Lane.FIRST))
    with pytest.raises(BrokerError, match="no queue"):
        calm.publish(maps(1))
    calm.publish(maps(3))
    assert taken(consumer).message.task.number == 3


def test_a_full_lane_refuses_and_takes_again_when_there_is_room(rabbit_url: str) -> None:
    broker = RabbitBroker(replace(read_settings(rabbit_url), lane_limit=3))
    accepted = accepted_until_full(broker)
    assert 3 <= accepted < 50
    broker.publish([Message("j", "r", Task("fold", "f", n)) for n in range(20)])  # never bounded
    consumer = broker.consume([Lane.FIRST])
    for _ in range(accepted):
        consumer.acknowledge(taken(consumer))
    assert until(lambda: published(broker, 1), BrokerError)
    broker.close()


def test_what_cannot_be_read_is_removed(
    calm: OpenedBroker, rabbit_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    calm.publish(maps(0))
    queue = queue_name(prefix_of(rabbit_url), Lane.FIRST)
    good = message_format.encode(maps(2)[0])
    rubbish = (
        *(b"rubbish", b"", b'{"job": 1}', b"\xff\xfe", b"[" * 2_000),
        good.replace(b'"group":256', b'"group":0'),
        good.replace(b'"job":"j"', b'"job":"../j"'),
        good.replace(b'"number":2', b'"number":-2'),
    )
    for body in rubbish:
        admin(rabbit_url, "publish", queue, body)
    calm.publish(maps(1))
    consumer = calm.consume()
    for number in (0, 1):
        delivery = taken(consumer)
        assert delivery.message.task.number == number
        consumer.acknowledge(delivery)
    assert consumer.take() is None
    assert sum(calm.depths().values()) == 0
    assert caplog.text.count("removed a message") == len(rubbish)
    assert calm.dropped == len(rubbish)


def test_a_queue_with_other_properties_is_used_as_it_is(
    rabbit_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    admin(rabbit_url, "declare", queue_name(prefix_of(rabbit_url), Lane.FIRST))
    broker = open_broker(rabbit_url)
    broker.publish(maps(0, 5))
    consumer = broker.consume()
    assert {taken(consumer).message.task.number for _ in range(2)} == {0, 5}
    assert "a queue has other properties" in caplog.text
    broker.close()


def test_a_wrong_password_is_named_and_not_shown(
    rabbit: Node, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="caudal")
    broker = open_broker(rabbit.url.replace(PASSWORD, "wrong-secret"))
    for _ in range(2):  # the second time it does not even try
        with pytest.raises(BrokerLoginError, match="refuses this user and password") as refused:
            broker.publish(maps(0))
    broker.close()
    assert "wrong-secret" not in str(refused.value)
    assert "wrong-secret" not in caplog.text


def test_a_wrong_password_is_named_although_another_node_is_down(rabbit: Node) -> None:
    wrong = rabbit.url.replace(PASSWORD, "wrong-secret")
    for url in (f"{wrong},amqp://me:hidden@127.0.0.1:1/", f"amqp://me:hidden@127.0.0.1:1/,{wrong}"):
        broker = open_broker(url)
        with pytest.raises(BrokerLoginError, match="refuses this user and password"):
            broker.publish(maps(0))
        broker.close()


def test_a_broker_that_is_not_there_is_named(caplog: pytest.LogCaptureFixture) -> None:
    broker = open_broker("amqp://me:hidden@127.0.0.1:1/")
    for _ in range(3):
        with pytest.raises(BrokerError, match=r"RabbitMQ is away: 127\.0\.0\.1:1") as error:
            broker.depths()
        assert "hidden" not in str(error.value)
    assert not broker.connected
    assert caplog.text.count("RabbitMQ is away") == 1
    broker.close()
    with pytest.raises(BrokerError, match="closed"):
        broker.depths()


def test_depths_are_read_once_for_several_takes(
    calm: OpenedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    async def counted(*arguments: Any) -> dict[Lane, int]:
        reads.append(arguments)
        return await depths(*arguments)

    monkeypatch.setattr(rabbit_broker, "depths", counted)
    monkeypatch.setattr(rabbit_broker, "_DEPTHS_SECONDS", GUARD_SECONDS)
    calm.publish(maps(*[0] * 8))
    consumer = calm.consume()
    for _ in range(2):
        taken(consumer)
    assert len(reads) == 1  # of 8, two were taken here and six perhaps by others
    for _ in range(6):
        taken(consumer)
    assert consumer.take() is None


def test_a_lane_that_others_have_emptied_is_no_harm(
    calm: OpenedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rabbit_broker, "_DEPTHS_SECONDS", GUARD_SECONDS)
    calm.publish(maps(*[0] * 5))
    consumer, other = calm.consume(), calm.consume()
    taken(consumer)
    for _ in range(4):
        taken(other)
    calm.publish([FINISH])
    assert taken(consumer).message == FINISH


def test_an_idle_consumer_waits_for_its_next_look(
    calm: OpenedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither asks RabbitMQ more often than it may, nor comes later than the look is due."""
    monkeypatch.setattr(rabbit_broker, "_LOOK_SECONDS", 3 * rabbit_broker._WAIT_SECONDS)
    reads: list[float] = []

    async def counted(*arguments: Any) -> dict[Lane, int]:
        reads.append(time.monotonic())
        return await depths(*arguments)

    monkeypatch.setattr(rabbit_broker, "depths", counted)
    consumer = calm.consume()
    while len(reads) < 2:
        assert consumer.take() is None
    assert reads[1] - reads[0] >= 3 * rabbit_broker._WAIT_SECONDS
