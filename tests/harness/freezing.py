"""SIGSTOP to a child of this process, and back."""

import os
import signal


def freeze(pid: int) -> None:
    """Freeze it, and wait until it is frozen: on a busy machine the other threads of a process run
    on for a while after the signal was sent, long enough to answer once more."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


def thaw(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)
