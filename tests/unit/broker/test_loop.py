"""A loop on its own thread, called from others."""

import asyncio
import threading

import pytest
from tests.harness.waiting import GUARD_SECONDS

from caudal.broker.loop import LoopThread
from caudal.errors import BrokerError


async def thread_name() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def raised() -> None:
    raise ValueError("from there")


def test_values_and_errors_come_back() -> None:
    loop = LoopThread(60)
    assert loop.call(thread_name()) == "broker"
    with pytest.raises(ValueError, match="from there"):
        loop.call(raised())
    loop.close()


def test_what_takes_too_long_is_given_up() -> None:
    loop = LoopThread(0.01)
    with pytest.raises(BrokerError, match="did not answer in time"):
        loop.call(asyncio.sleep(3600))
    loop.close()


def test_closing_ends_what_waits_and_what_comes_later() -> None:
    loop, begun, endings = LoopThread(60), threading.Event(), list[str]()

    async def wait() -> None:
        begun.set()
        await asyncio.sleep(3600)

    def caller() -> None:
        try:
            loop.call(wait())
        except BrokerError as error:
            endings.append(str(error))

    waiting = threading.Thread(target=caller)
    waiting.start()
    assert begun.wait(GUARD_SECONDS)
    loop.close()
    waiting.join()
    assert endings == ["RabbitMQ did not answer in time"]
    with pytest.raises(BrokerError, match="closed"):
        loop.call(thread_name())
    loop.close()
