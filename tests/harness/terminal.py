"""A program in a real pseudo-terminal, typed to as a person would."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from tests.harness.waiting import GUARD_SECONDS

_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[a-zA-Z]|[()][0-9A-Za-z]|[=>])")
_WHERE = b"\x1b[6n"  # the program asks where the cursor is
_HERE = b"\x1b[1;1R"


class Terminal:
    """The keyboard and the screen of a program."""

    def __init__(self, process: int, master: int) -> None:
        self._process = process
        self._master = master
        self._unread = b""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def read_until(self, text: str, press: str = "") -> str:
        """What is shown until this text, without colours and movements.

        `press` is typed again and again until then.
        """
        shown = ""
        deadline = time.monotonic() + GUARD_SECONDS
        while text not in shown:
            assert time.monotonic() < deadline, f"no {text!r} in {shown!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                self._take()
            elif press:
                self.type(press)
            shown = _ESCAPES.sub(b"", self._unread).decode(errors="replace").replace("\r", "")
        self._unread = b""
        return shown

    def _take(self) -> None:
        with contextlib.suppress(OSError):  # the program has ended
            found = os.read(self._master, 1 << 16)
            self._unread += found
            if _WHERE in found:
                os.write(self._master, _HERE)

    def wait(self) -> int:
        """The exit status."""
        deadline = time.monotonic() + GUARD_SECONDS
        while (ended := os.waitpid(self._process, os.WNOHANG))[0] == 0:
            assert time.monotonic() < deadline
            if select.select([self._master], [], [], 0.1)[0]:
                self._take()
        self._process = 0
        return os.waitstatus_to_exitcode(ended[1])

    def close(self) -> None:
        if self._process:
            os.kill(self._process, 9)
            os.waitpid(self._process, 0)
        os.close(self._master)


@contextlib.contextmanager
def caudal_in_terminal(*arguments: str, home: Path, columns: int = 80) -> Iterator[Terminal]:
    """Run `caudal` with these arguments in a terminal; end it after the block."""
    process, master = pty.fork()
    if process == 0:
        environment = {**os.environ, "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        for name in ("XDG_STATE_HOME", "COLUMNS", "LINES"):
            environment.pop(name, None)
        os.execve(sys.executable, [sys.executable, "-m", "caudal", *arguments], environment)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    terminal = Terminal(process, master)
    try:
        yield terminal
    finally:
        terminal.close()
