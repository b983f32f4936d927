"""How long a child process may take to start: counted in its own CPU time, not by the clock.

A sentiment model of transformers takes 5 to 20 seconds of CPU time to load. On a busy machine that
was more than a minute, and a child that is killed and started again after a minute never becomes
ready.
"""

from dataclasses import dataclass, field

IDLE_SECONDS = 60.0  # without any progress: it waits for something that does not come
CPU_SECONDS = 300.0


@dataclass
class StartPatience:
    """Judges one start by samples of the child's CPU time."""

    _spent: float = -1.0
    _since: float = field(default=0.0, init=False)  # when it was last seen to have computed

    def is_over(self, now: float, spent: float) -> bool:
        """Return whether the start is to be given up; `spent` is the CPU time until now."""
        if spent > self._spent:
            self._spent, self._since = spent, now
        return spent > CPU_SECONDS or now - self._since > IDLE_SECONDS
