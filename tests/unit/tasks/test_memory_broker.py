"""The memory broker keeps the port's rules."""

from caudal.broker import MemoryBroker
from caudal.formats.keys import Lane, Message, Task


def message(number: int, kind: str = "map") -> Message:
    return Message("j", "r", Task("map" if kind == "map" else "finish", "t", number))


def test_lanes_are_served_in_turn() -> None:
    broker = MemoryBroker()
    broker.publish([message(number) for number in (100, 101, 102, 0)] + [message(0, "finish")])
    consumer = broker.consume()
    taken = [delivery.message for _ in range(3) if (delivery := consumer.take())]
    assert {one.lane for one in taken} == {Lane.FIRST, Lane.LATE, Lane.FINISH}


def test_what_is_handed_back_comes_again_and_counts() -> None:
    broker = MemoryBroker()
    broker.publish([message(0)])
    consumer = broker.consume()
    first = consumer.take()
    assert first
    consumer.hand_back(first)
    again = broker.consume().take()
    assert again
    assert (first.count, again.count) == (1, 2)


def test_what_a_consumer_held_comes_again_when_it_is_gone() -> None:
    broker = MemoryBroker()
    broker.publish([message(0), message(1)])
    consumer = broker.consume()
    one, _ = consumer.take(), consumer.take()
    assert one
    consumer.acknowledge(one)
    consumer.close()
    assert sum(broker.depths().values()) == 1
    consumer.acknowledge(one)  # again, late: no harm


def test_everything_can_be_lost() -> None:
    broker = MemoryBroker()
    broker.publish([message(0)])
    broker.wipe()
    assert broker.consume().take() is None
