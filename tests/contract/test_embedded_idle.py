"""What an idle consumer of the broker in a file costs, and how it is woken."""

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from caudal.broker import embedded
from caudal.broker.changes import Changes
from caudal.broker.embedded import FILE, EmbeddedBroker
from caudal.formats.keys import Message, Task

_FOR_EVER = 86_400.0
MESSAGE = Message("j", "r", Task("map", "t", 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "broker"


@pytest.fixture
def broker(folder: Path) -> Iterator[EmbeddedBroker]:
    with closing(EmbeddedBroker(folder)) as opened:
        yield opened


def counted(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The transactions of a broker from now on."""
    found: list[object] = []
    act = broker.act

    def counting(what: Any) -> Any:
        found.append(what)
        return act(what)

    monkeypatch.setattr(broker, "act", counting)
    return found


def test_a_second_look_at_empty_queues_is_no_transaction(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(embedded, "_REAP_SECONDS", 0.0)
    consumer = broker.consume()
    assert consumer.take() is None
    transactions = counted(broker, monkeypatch)
    assert [consumer.take() for _ in range(5)] == [None] * 5
    assert transactions == []


def test_a_waiting_consumer_is_woken_by_a_message(
    broker: EmbeddedBroker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_WAIT_SECONDS", _FOR_EVER)
    consumer = broker.consume()
    broker.depths()  # the file exists
    with ThreadPoolExecutor(1) as pool, closing(EmbeddedBroker(folder)) as other:
        taking = pool.submit(lambda: next(filter(None, iter(consumer.take, MESSAGE))))
        other.publish([MESSAGE])
        assert taking.result().message == MESSAGE


def test_a_waiting_consumer_is_woken_when_the_file_is_replaced(
    broker: EmbeddedBroker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_WAIT_SECONDS", 0.0)
    consumer = broker.consume()
    assert consumer.take() is None
    (folder / FILE).unlink()
    with closing(EmbeddedBroker(folder)) as other:
        other.publish([MESSAGE])
        assert consumer.take() is not None


def test_what_happened_before_a_look_ends_no_wait_after_it(tmp_path: Path) -> None:
    with closing(Changes(tmp_path)) as changes:
        changes.forget()
        (tmp_path / "one").write_text("1")
        changes.wait(_FOR_EVER)  # it ends at once
        changes.forget()
        changes.wait(0.0)
        with pytest.raises(BlockingIOError):
            changes._read()


def test_a_folder_that_is_gone_and_back_is_watched_again(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with closing(Changes(folder)) as changes:
        changes.forget()
        folder.rmdir()
        changes.forget()
        folder.mkdir()
        changes.forget()
        (folder / "one").write_text("1")
        changes.wait(_FOR_EVER)


def test_without_inotify_a_wait_is_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = SimpleNamespace(inotify_init1=lambda flags: -1)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: refusing)
    with closing(Changes(tmp_path)) as changes:
        changes.forget()
        changes.wait(_FOR_EVER)  # it ends by itself, so that the caller looks again
