"""The broker in a file: holders killed, the file deleted, damaged, not ours, unwritable."""

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests.harness import broker_holder
from tests.harness.waiting import until

from caudal.broker.embedded import FILE, EmbeddedBroker
from caudal.broker.open_broker import open_broker
from caudal.broker.port import BrokerError, Consumer, LaneFullError, OpenedBroker
from caudal.errors import UsageError
from caudal.formats.keys import Message, Task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "broker"


@pytest.fixture
def broker(folder: Path) -> Iterator[OpenedBroker]:
    opened = open_broker(f"embedded:{folder}")
    yield opened
    opened.close()


def maps(*numbers: int) -> list[Message]:
    return [Message("j", "r", Task("map", "t", number)) for number in numbers]


def published(broker: OpenedBroker, *tasks: int) -> bool:
    broker.publish(maps(*tasks))
    return True


def numbers(consumer: Consumer) -> list[int]:
    """The numbers of all tasks that can be taken now."""
    found = []
    while (delivery := consumer.take()) is not None:
        consumer.acknowledge(delivery)
        found.append(delivery.message.task.number)
    return sorted(found)


def holder(folder: Path) -> subprocess.Popen[str]:
    """A process that has taken a message and holds it."""
    process = subprocess.Popen(
        [sys.executable, broker_holder.__file__, f"embedded:{folder}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_what_a_killed_process_held_is_delivered_again(broker: OpenedBroker, folder: Path) -> None:
    broker.publish(maps(5))
    with holder(folder) as process:
        assert broker.consume().take() is None
        process.kill()
        process.wait()
        again = until(broker.consume().take)
    assert (again.message.task.number, again.count) == (5, 2)


def test_a_session_that_is_over_leaves_no_file(broker: OpenedBroker, folder: Path) -> None:
    broker.publish(maps(5))
    with holder(folder) as process:
        process.kill()
        process.wait()
    until(broker.consume().take)
    assert len(list((folder / "sessions").iterdir())) == 1


def test_processes_share_without_overlap(broker: OpenedBroker, folder: Path) -> None:
    broker.publish(maps(0, 1, 2))
    holders = [holder(folder) for _ in range(3)]
    assert broker.consume().take() is None
    for process in holders:
        process.kill()
        process.communicate()
    consumer = broker.consume()
    assert sorted(until(consumer.take).message.task.number for _ in range(3)) == [0, 1, 2]


def test_a_deleted_file_is_made_anew_by_everyone(broker: OpenedBroker, folder: Path) -> None:
    with closing(open_broker(f"embedded:{folder}")) as other:
        consumer = other.consume()
        broker.publish(maps(1, 2))
        held = consumer.take()
        assert held is not None
        (folder / FILE).unlink()
        broker.publish(maps(3))
        consumer.acknowledge(held)  # of a file that is gone
        assert numbers(consumer) == [3]


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "garbage":
        path.write_bytes(os.urandom(len(data)))
    elif how == "truncated":
        os.truncate(path, len(data) // 2)
    elif how == "emptied":
        os.truncate(path, 0)
    elif how == "page":
        path.write_bytes(data[:4096] + bytes([255]) * 4096 + data[8192:])
    else:
        path.unlink()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE messages (something TEXT)")


@pytest.mark.parametrize("how", ["garbage", "truncated", "emptied", "page", "of another"])
def test_a_damaged_file_costs_what_it_held_and_no_more(
    how: str, broker: OpenedBroker, folder: Path
) -> None:
    with closing(open_broker(f"embedded:{folder}")) as other:
        consumer = other.consume()
        broker.publish(maps(*range(200)))
        assert consumer.take() is not None
        damage(folder / FILE, how)
        until(lambda: published(broker, 7), BrokerError)
        (left,) = until(lambda: (numbers(consumer),), BrokerError)  # maybe none
        assert set(left) <= set(range(200))
        broker.publish(maps(1_000))
        assert numbers(consumer) == [1_000]


def test_a_message_that_cannot_be_read_is_dropped(broker: OpenedBroker, folder: Path) -> None:
    broker.publish(maps(0))
    with closing(sqlite3.connect(folder / FILE)) as connection, connection:
        connection.execute("INSERT INTO messages (lane, body) VALUES ('map-0', x'7b7d')")
        connection.execute("UPDATE messages SET id = id + 10 WHERE body <> x'7b7d'")
    assert numbers(broker.consume()) == [0]
    assert set(broker.depths().values()) == {0}


def test_a_full_lane_refuses(folder: Path) -> None:
    with closing(EmbeddedBroker(folder, lane_limit=3)) as broker:
        broker.publish(maps(0, 1, 2))
        with pytest.raises(LaneFullError, match="map-0 is full"):
            broker.publish(maps(3))
        assert numbers(broker.consume()) == [0, 1, 2]
        broker.publish(maps(3))


def test_only_this_user_may_look(broker: OpenedBroker, folder: Path) -> None:
    broker.publish(maps(0))
    broker.consume().take()
    assert folder.stat().st_mode & 0o777 == 0o700
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


def test_a_folder_that_cannot_be_made_is_an_error_of_the_broker(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with closing(open_broker(f"embedded:{tmp_path}/file/broker")) as broker:
        with pytest.raises(BrokerError, match="cannot be used"):
            broker.depths()
        assert not broker.connected


def test_a_relative_folder_is_refused() -> None:
    with pytest.raises(UsageError, match="absolute"):
        open_broker("embedded:broker")


@pytest.mark.parametrize("seed", range(3))
def test_many_threads_and_sessions_lose_and_double_nothing(seed: int, folder: Path) -> None:
    """Published by two sessions, taken by four; some of what is taken is handed back."""

    def publish(first: int) -> None:
        with closing(EmbeddedBroker(folder)) as broker:
            for number in range(first, first + 60):
                broker.publish(maps(number))

    def take(number: int) -> list[int]:
        chance, found = random.Random(seed * 100 + number), list[int]()
        with closing(EmbeddedBroker(folder)) as broker:
            consumer = broker.consume()
            while len(done) < 120:
                delivery = consumer.take()
                if delivery is not None and chance.random() < 0.2:
                    consumer.hand_back(delivery)
                elif delivery is not None:
                    consumer.acknowledge(delivery)
                    found.append(delivery.message.task.number)
                    done.append(delivery.message.task.number)
        return found

    done: list[int] = []
    with ThreadPoolExecutor(6) as pool:
        publishing = [pool.submit(publish, first) for first in (0, 60)]
        taking = [pool.submit(take, number) for number in range(4)]
        for future in publishing:
            future.result()
        found = [number for future in taking for number in future.result()]
    assert sorted(found) == list(range(120))
