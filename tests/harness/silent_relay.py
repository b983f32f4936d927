"""A TCP relay whose open connections can fall silent, as after a network that failed."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit


class SilentRelay:
    """Relays to a server. What was open when `silence` was called stays open and moves nothing.

    Every part of an answer comes `answer_seconds` late.
    """

    def __init__(self, endpoint: str, answer_seconds: float = 0.0) -> None:
        there = urlsplit(endpoint)
        self._there = there.hostname or "", there.port or 80
        self._ear = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._ear.getsockname()[1]}"
        self._answer_seconds = answer_seconds
        self.opened = 0
        self._silent = threading.Event()  # that of the connections which are open now
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        """Let all open connections be silent from now on; new ones are relayed."""
        self._silent.set()
        self._silent = threading.Event()

    def close(self) -> None:
        for one in (self._ear, *(one for pair in self._pairs for one in pair)):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._ear.accept()
                far = socket.create_connection(self._there)
                self.opened += 1
                self._pairs.append((near, far))
                for *way, pause in ((near, far, 0.0), (far, near, self._answer_seconds)):
                    threading.Thread(
                        target=_move, args=(*way, self._silent, pause), daemon=True
                    ).start()


def _move(
    source: socket.socket, target: socket.socket, silent: threading.Event, pause: float
) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            time.sleep(pause)
            if not silent.is_set():
                target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def relayed(endpoint: str, answer_seconds: float = 0.0) -> Iterator[SilentRelay]:
    """Relay to this endpoint until the end of the block."""
    with contextlib.closing(SilentRelay(endpoint, answer_seconds)) as relay:
        yield relay
