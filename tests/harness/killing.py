"""A process that kills itself before its n-th system call: what a crash there leaves is real."""

import fcntl
import os
import signal
from collections.abc import Callable

CALLS = ("open", "write", "utime", "fsync", "link", "rename", "unlink", "mkdir", "rmdir", "close")


def kill_before_call(number: int) -> Callable[[], int]:
    """Replace the system calls so that this process dies before the n-th; gives the counter."""
    made = 0

    def watched(call: Callable[..., object], is_write: bool) -> Callable[..., object]:
        def before(*arguments: object, **options: object) -> object:
            nonlocal made
            if made == number:
                if is_write:  # torn: half of it reaches the file
                    descriptor, piece = arguments
                    call(descriptor, memoryview(piece)[: len(piece) // 2])  # type: ignore[arg-type]
                os.kill(os.getpid(), signal.SIGKILL)
            made += 1
            return call(*arguments, **options)

        return before

    for name in CALLS:
        setattr(os, name, watched(getattr(os, name), is_write=name == "write"))
    fcntl.flock = watched(fcntl.flock, is_write=False)  # type: ignore[assignment]
    return lambda: made
