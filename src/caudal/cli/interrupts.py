"""Signals that this process has received. Libraries may raise other errors for them."""

import signal

RECEIVED: list[int] = []


def forgive_interrupt() -> bool:
    """Forget Ctrl-C, for a command that goes on after it. Return False if another signal came."""
    if any(number != signal.SIGINT for number in RECEIVED):
        return False
    RECEIVED.clear()
    return True
