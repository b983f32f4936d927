"""Connections to a broker that does not answer."""

import asyncio
import threading

import pytest
from aio_pika import Connection
from yarl import URL

from caudal.broker.link import LinkConnection


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_connection_that_failed_is_collected_in_silence(
    recwarn: pytest.WarningsRecorder,
) -> None:
    """Any thread may collect it, while the loop of the broker goes on in another."""
    asyncio.run(_collected_elsewhere(Connection))
    assert "never awaited" in " ".join(str(one.message) for one in recwarn)
    recwarn.clear()
    asyncio.run(_collected_elsewhere(LinkConnection))
    assert [str(one.message) for one in recwarn] == []


async def _collected_elsewhere(kind: type[Connection]) -> None:
    held = [kind(URL("amqp://127.0.0.1:1/"))]
    collector = threading.Thread(target=held.clear)
    collector.start()
    collector.join()
