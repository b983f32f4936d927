"""What a medic's event loop needs: a timer, and a socket for heartbeats."""

import asyncio
import socket
from collections.abc import Callable

TICK_SECONDS = 0.1


class LoopTicks:
    """Timer that calls `tick` ten times a second and wakes the loop once for each call."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._loop = asyncio.get_running_loop()
        self.broken: asyncio.Future[None] = self._loop.create_future()
        self._next = self._loop.call_soon(self._turn)

    def stop(self) -> None:
        self._next.cancel()
        self.broken.cancel()

    def _turn(self) -> None:
        try:
            self._tick()
        except Exception as error:
            self.broken.set_exception(error)
            return
        self._next = self._loop.call_later(TICK_SECONDS, self._turn)


async def open_ear(address: str, port: int) -> socket.socket:
    """Create a non-blocking socket for heartbeats."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address, port, type=socket.SOCK_DGRAM)
    family, kind, protocol, _, where = found[0]
    ear = socket.socket(family, kind, protocol)
    try:
        ear.setblocking(False)
        ear.bind(where)
    except BaseException:
        ear.close()
        raise
    return ear
