"""Hosts as network namespaces, with one switch between them.

Everything has the name of this run, and everything in these namespaces was started by it. So at
the end, whatever happened, every process in them is killed and they are removed. The network of
the machine itself is neither used nor changed.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.partitions.switch import encoded, hardware_address, port_of
from tests.partitions.wires import Rule, Way

_NEW_NETWORK = 0x40000000
_HUB = "hub"


@dataclass
class Network:
    """A running network."""

    run: str
    hosts: tuple[str, ...]
    _switch: subprocess.Popen[str]

    def address(self, host: str) -> str:
        return f"10.77.0.{self.hosts.index(host) + 1}"

    def inside(self, host: str) -> list[str]:
        """The words before a command that runs it on that host."""
        return ["nsenter", f"--net={_path(self.run, host)}", "--"]

    def enter(self, host: str) -> None:
        """Move the calling thread, and whatever it starts, to that host."""
        enter(_path(self.run, host))

    def pids(self, host: str) -> list[int]:
        """The processes of that host, except this one."""
        return _pids(self.run, host)

    def kill(self, host: str) -> int:
        """Kill all processes of a host at once. Return how many there were."""
        victims = self.pids(host)
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(victims)

    def follow(self, rules: dict[Way, Rule]) -> dict[str, int]:
        """Change the rules. Return how many frames were lost and late under the former ones."""
        assert self._switch.stdin is not None
        assert self._switch.stdout is not None
        self._switch.stdin.write(encoded(rules) + "\n")
        self._switch.stdin.flush()
        told: dict[str, int] = json.loads(self._switch.stdout.readline())
        return told


@contextlib.contextmanager
def running(hosts: Sequence[str], seed: int) -> Iterator[Network]:
    """Make the namespaces, lines and the switch; remove them at the end, whatever happens."""
    run = f"caudal-{os.getpid()}"
    switch: subprocess.Popen[str] | None = None
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _lay_out(run, hosts)
        switch = subprocess.Popen(
            ["nsenter", f"--net={_path(run, _HUB)}", "--", sys.executable, "-m",
             "tests.partitions.switch", str(seed), *hosts],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert switch.stdout is not None
        assert switch.stdout.readline() == "ready\n"
        yield Network(run, tuple(hosts), switch)
    finally:
        _set_namespace(home)
        os.close(home)
        _remove(run, hosts)
        if switch is not None:
            switch.wait()


def enter(path: Path) -> None:
    """Move the calling thread to a network namespace."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _set_namespace(descriptor)
    finally:
        os.close(descriptor)


def _set_namespace(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, _NEW_NETWORK):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")


def _path(run: str, host: str) -> Path:
    return Path("/run/netns") / f"{run}-{host}"


def _lay_out(run: str, hosts: Sequence[str]) -> None:
    for host in (_HUB, *hosts):
        _ip("netns", "add", f"{run}-{host}")
        _ip("-n", f"{run}-{host}", "link", "set", "lo", "up")
        _inside(run, host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    for number, host in enumerate(hosts, 1):
        there = f"{run}-{host}"
        _ip("-n", f"{run}-{_HUB}", "link", "add", port_of(host), "type", "veth", "peer", "name",
            "eth0", "netns", there)  # fmt: skip
        _ip("-n", there, "link", "set", "eth0", "address", hardware_address(number))
        _ip("-n", there, "address", "add", f"10.77.0.{number}/24", "dev", "eth0")
        _ip("-n", there, "link", "set", "eth0", "up")
        _ip("-n", f"{run}-{_HUB}", "link", "set", port_of(host), "up")


def _remove(run: str, hosts: Sequence[str]) -> None:
    existing = [one for one in (*hosts, _HUB) if _path(run, one).exists()]
    for _ in range(50):  # a process may start another one while it is killed
        victims = [pid for host in existing for pid in _pids(run, host)]
        if not victims:
            break
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    for host in existing:
        _ip("netns", "delete", f"{run}-{host}")


def _pids(run: str, host: str) -> list[int]:
    told = _ip("netns", "pids", f"{run}-{host}")
    return [pid for pid in map(int, told.split()) if pid != os.getpid()]


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def _inside(run: str, host: str, *words: str) -> None:
    command = ["nsenter", f"--net={_path(run, host)}", "--", *words]
    subprocess.run(command, check=True, capture_output=True)
