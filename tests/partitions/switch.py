"""The switch between the hosts: a process in a namespace of its own that passes frames on.

It is no bridge of the kernel, because not every kernel can delay (netem is a module), and because
one seeded place that loses, delays and slows frames is easy to repeat.

Started as `python -m tests.partitions.switch SEED HOST...`. It reads a line of JSON for every
change of the rules, and answers with the frames that were lost and delayed since the last one.
"""

import heapq
import itertools
import json
import selectors
import socket
import sys
import time
from random import Random

from tests.partitions.wires import Rule, Way, Wires

_ALL_PROTOCOLS = 0x0003
_SOL_PACKET, _VNET_HDR, _IGNORE_OUTGOING = 263, 15, 23
_HEAD = 10  # of a frame as the kernel passes it: what is left to do for segments and checksums
_FRAME_MOST = 70_000
_AT_ONCE = 64
_BUFFER = 8 << 20
_SO_RCVBUFFORCE = 33


def port_of(host: str) -> str:
    """The name of the switch's end of the line to a host."""
    return f"p-{host}"


def hardware_address(number: int) -> str:
    """The address of the host with that place in the list."""
    return f"02:ca:00:00:00:{number:02x}"


class Switch:
    """Open lines, frames on their way, and the rules."""

    def __init__(self, hosts: list[str], wires: Wires) -> None:
        self._wires = wires
        self._ports = {host: _opened(port_of(host)) for host in hosts}
        self._hosts = {
            bytes.fromhex(hardware_address(number).replace(":", "")): host
            for number, host in enumerate(hosts, 1)
        }
        self._waiting: list[tuple[float, int, str, bytes]] = []
        self._number = itertools.count()

    def run(self) -> None:
        """Pass frames on until the runner closes the line of commands."""
        ready = selectors.DefaultSelector()
        for host, port in self._ports.items():
            ready.register(port, selectors.EVENT_READ, host)
        ready.register(sys.stdin, selectors.EVENT_READ, None)
        print("ready", flush=True)
        while True:
            for key, _ in ready.select(self._pause()):
                if key.data is not None:
                    self._take(key.data)
                elif not self._obey(sys.stdin.readline()):
                    return
            self._release(time.monotonic())

    def _pause(self) -> float | None:
        return max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else None

    def _obey(self, line: str) -> bool:
        if not line:
            return False
        told = {"lost": self._wires.lost.total(), "late": self._wires.late.total()}
        self._wires.lost.clear()
        self._wires.late.clear()
        self._wires.follow(decoded(line))
        print(json.dumps(told), flush=True)
        return True

    def _take(self, sender: str) -> None:
        now, port = time.monotonic(), self._ports[sender]
        for _ in range(_AT_ONCE):
            try:
                frame = port.recv(_FRAME_MOST)
            except BlockingIOError:
                return
            wanted = self._hosts.get(frame[_HEAD : _HEAD + 6])
            for receiver in self._ports if wanted is None else (wanted,):
                if receiver != sender:
                    self._pass((sender, receiver), frame, now)

    def _pass(self, way: Way, frame: bytes, now: float) -> None:
        leaves = self._wires.leaves(way, len(frame), now)
        if leaves is None:
            return
        if leaves <= now:
            self._send(way[1], frame)
        else:
            heapq.heappush(self._waiting, (leaves, next(self._number), way[1], frame))

    def _release(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            _, _, receiver, frame = heapq.heappop(self._waiting)
            self._send(receiver, frame)

    def _send(self, receiver: str, frame: bytes) -> None:
        try:
            self._ports[receiver].send(frame)
        except OSError:  # its queue is full: as any switch does
            self._wires.lost["switch", receiver] += 1


def encoded(rules: dict[Way, Rule]) -> str:
    """The rules as a line of JSON."""
    return json.dumps([[*way, one.loss, one.delay, one.rate] for way, one in rules.items()])


def decoded(line: str) -> dict[Way, Rule]:
    return {(one[0], one[1]): Rule(*one[2:]) for one in json.loads(line)}


def _opened(interface: str) -> socket.socket:
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(_SOL_PACKET, _VNET_HDR, 1)
    port.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
    port.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
    port.setblocking(False)
    port.bind((interface, _ALL_PROTOCOLS))
    return port


def main() -> None:
    seed, *hosts = sys.argv[1:]
    Switch(hosts, Wires(Random(int(seed)))).run()


if __name__ == "__main__":
    main()
