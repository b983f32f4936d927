"""How old a restart order is, by the clock of the medic that receives it.

Clocks of hosts differ, and some are moved. So an order has no time of its sender: it names the
newest heartbeat of its receiver that the leader had heard when it gave the order. The receiver
knows when it sent that heartbeat, and the order is at most as old. A heartbeat of an earlier
incarnation, or one that is not remembered any more, is too old.
"""

from collections import deque
from dataclasses import dataclass, field

from caudal.process.pulse import Pulse

MOST_SECONDS = 5.0  # a healthy medic was heard within 2; a lost order is given again after 3
_REMEMBERED = 32  # heartbeats: some 16 seconds of them


@dataclass
class OwnBeats:
    """When this medic sent its last heartbeats."""

    _sent: deque[tuple[tuple[int, int], float]] = field(
        default_factory=lambda: deque(maxlen=_REMEMBERED)
    )

    def note(self, pulse: Pulse, now: float) -> None:
        """Remember a heartbeat that was sent at `now` or later."""
        self._sent.append(((pulse.incarnation, pulse.sequence), now))

    def is_fresh(self, heard: tuple[int, int] | None, now: float) -> bool:
        """Return whether an order is young enough that was given when `heard`, an incarnation and a
        sequence, was this medic's newest heartbeat. None: an earlier version did not say."""
        if heard is None:
            return True
        return any(beat == heard and now - sent <= MOST_SECONDS for beat, sent in self._sent)
