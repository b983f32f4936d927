"""The broker port's rules: one suite for memory, a file and RabbitMQ."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.harness.rabbit import rabbit as rabbit
from tests.harness.rabbit import rabbit_url as rabbit_url
from tests.harness.waiting import until

from caudal.broker import MemoryBroker
from caudal.broker.embedded import EmbeddedBroker
from caudal.broker.open_broker import open_broker
from caudal.broker.port import Consumer, Delivery, OpenedBroker
from caudal.formats.keys import Lane, Message, Task

OpenBroker = Callable[[], OpenedBroker]


@pytest.fixture(params=["memory", "embedded", "rabbit"])
def broker(request: pytest.FixtureRequest) -> Iterator[OpenedBroker]:
    """An empty broker, closed at the end."""
    if request.param == "memory":
        opened: OpenedBroker = MemoryBroker()
    elif request.param == "embedded":
        opened = EmbeddedBroker(request.getfixturevalue("tmp_path") / "broker")
    else:
        opened = open_broker(request.getfixturevalue("rabbit_url"))
    yield opened
    opened.close()


def maps(*numbers: int) -> list[Message]:
    return [Message("j", "r", Task("map", "t", number)) for number in numbers]


FINISH = Message("j", "r", Task("finish", "q1"))
FOLD = Message("j", "r", Task("fold", "f1", 3))


def taken(consumer: Consumer) -> Delivery:
    return until(consumer.take)


def drained(consumer: Consumer, count: int) -> list[Message]:
    """That many messages, acknowledged."""
    found = []
    for _ in range(count):
        delivery = taken(consumer)
        consumer.acknowledge(delivery)
        found.append(delivery.message)
    return found


def test_what_is_published_is_taken_as_it_was(broker: OpenedBroker) -> None:
    messages = [*maps(0, 7, 99), FINISH, FOLD]
    broker.publish(messages)
    consumer = broker.consume()
    found = drained(consumer, 5)
    assert sorted(found, key=lambda one: one.task) == sorted(messages, key=lambda one: one.task)
    assert consumer.take() is None


def test_nothing_to_publish_and_nothing_to_take(broker: OpenedBroker) -> None:
    broker.publish([])
    assert broker.consume().take() is None
    assert set(broker.depths().values()) == {0}


def test_depths_are_told_per_lane(broker: OpenedBroker) -> None:
    broker.publish([*maps(0, 1, 5, 20, 64, 65, 66), FINISH, FOLD])
    assert broker.depths() == {
        Lane.FIRST: 2,
        Lane.EARLY: 1,
        Lane.MIDDLE: 1,
        Lane.LATE: 3,
        Lane.FOLD: 1,
        Lane.FINISH: 1,
        Lane.SLOW: 0,
    }


def test_lanes_are_served_in_turn(broker: OpenedBroker) -> None:
    broker.publish([*maps(*range(100, 120), 0), FINISH])
    consumer = broker.consume()
    first = [taken(consumer).message for _ in range(3)]
    assert {one.lane for one in first} == {Lane.FIRST, Lane.LATE, Lane.FINISH}


def test_a_consumer_may_be_restricted_to_lanes(broker: OpenedBroker) -> None:
    broker.publish([*maps(0, 100), FINISH, FOLD])
    consumer = broker.consume([Lane.FOLD, Lane.FINISH])
    assert {one.lane for one in drained(consumer, 2)} == {Lane.FOLD, Lane.FINISH}
    assert consumer.take() is None


def test_last_lanes_are_taken_when_the_others_are_empty(broker: OpenedBroker) -> None:
    slow = [Message("j", "r", Task("fold", "f1", number), slow=1) for number in range(2)]
    broker.publish([*slow, FINISH, *maps(0, 100)])
    consumer = broker.consume([lane for lane in Lane if lane is not Lane.SLOW], [Lane.SLOW])
    assert {one.lane for one in drained(consumer, 3)} == {Lane.FINISH, Lane.FIRST, Lane.LATE}
    assert drained(consumer, 2) == slow


def test_what_is_held_is_nobody_elses(broker: OpenedBroker) -> None:
    broker.publish(maps(0))
    consumer = broker.consume()
    delivery = taken(consumer)
    assert broker.consume().take() is None
    consumer.acknowledge(delivery)
    assert broker.consume().take() is None


def test_what_is_handed_back_comes_again_and_counts(broker: OpenedBroker) -> None:
    broker.publish(maps(0))
    counts = []
    for _ in range(6):
        consumer = broker.consume()
        delivery = taken(consumer)
        counts.append(delivery.count)
        consumer.hand_back(delivery)
    assert counts == [1, 2, 3, 4, 5, 6]  # and is never dropped


def test_what_a_consumer_held_comes_again_when_it_is_gone(broker: OpenedBroker) -> None:
    broker.publish(maps(0, 1))
    consumer = broker.consume()
    done, held = taken(consumer), taken(consumer)
    consumer.acknowledge(done)
    consumer.close()
    again = taken(broker.consume())
    assert (again.message, again.count) == (held.message, 2)
    assert broker.consume().take() is None


def test_acknowledging_late_or_twice_does_no_harm(broker: OpenedBroker) -> None:
    broker.publish(maps(0))
    consumer = broker.consume()
    delivery = taken(consumer)
    consumer.close()
    again = broker.consume()
    held = taken(again)
    for late in (consumer, again):
        late.acknowledge(delivery if late is consumer else held)
        late.acknowledge(delivery if late is consumer else held)
        late.hand_back(delivery if late is consumer else held)
    assert broker.consume().take() is None


def test_many_threads_publish_at_once(broker: OpenedBroker) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda first: broker.publish(maps(*range(first, first + 40))), range(0, 320, 40)
            )
        )
    numbers = [one.task.number for one in drained(broker.consume(), 320)]
    assert sorted(numbers) == list(range(320))


def test_more_messages_than_are_sent_together(broker: OpenedBroker) -> None:
    broker.publish(maps(*range(1_200)))
    assert sum(broker.depths().values()) == 1_200


def test_several_consumers_share_without_overlap(broker: OpenedBroker) -> None:
    broker.publish(maps(*range(60)))
    with ThreadPoolExecutor(3) as pool:
        shares = list(pool.map(lambda _: drained(broker.consume(), 20), range(3)))
    numbers = [one.task.number for share in shares for one in share]
    assert sorted(numbers) == list(range(60))
