"""Waiting for what must happen sooner or later, on a machine however busy."""

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

Value = TypeVar("Value")

GUARD_SECONDS = 600.0  # against a test that hangs, not a limit: whatever is slower only waits


def until(
    ask: Callable[[], Value | None],
    passing: type[Exception] | tuple[type[Exception], ...] = (),
    pause_seconds: float = 0.02,
) -> Value:
    """Ask until the answer is something true; `passing` errors are no answer."""
    deadline, last = time.monotonic() + GUARD_SECONDS, ""
    while time.monotonic() < deadline:
        try:
            answer = ask()
        except passing as error:
            last = f" (last: {error})"
        else:
            if answer:
                return answer
        time.sleep(pause_seconds)
    pytest.fail(f"it did not happen in {GUARD_SECONDS:g} seconds{last}")
