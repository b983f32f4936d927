"""What a network does to each frame, as pure decisions: it is lost, or it leaves at some time.

Rules
1. A rule belongs to one direction between two hosts, or to all frames that one host sends or
   receives (`*`). Of several rules that fit a frame, every one applies.
2. Loss is drawn from one seeded source.
3. Frames of one direction never overtake each other.
4. A slow line has a short queue. What does not fit into it is lost.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

EVERY = "*"
_QUEUE_SECONDS = 1.0  # of a slow line


@dataclass(frozen=True)
class Rule:
    """What happens to frames of a direction."""

    loss: float = 0.0  # share that is lost
    delay: float = 0.0  # seconds
    rate: float = 0.0  # bytes per second; 0: any

    @classmethod
    def cut(cls) -> "Rule":
        return cls(loss=1.0)


Way = tuple[str, str]  # from, to
Rules = Mapping[Way, Rule]


@dataclass
class Wires:
    """All lines of the network."""

    random: Random
    rules: Rules = field(default_factory=dict)
    lost: Counter[Way] = field(default_factory=Counter)
    late: Counter[Way] = field(default_factory=Counter)
    _free: dict[Way, float] = field(default_factory=dict)  # when a line can take the next frame

    def follow(self, rules: Rules) -> None:
        """Use these rules, and no others, from now on."""
        self.rules = rules
        self._free.clear()

    def leaves(self, way: Way, size: int, now: float) -> float | None:
        """Return when a frame leaves that arrives now; None if it is lost."""
        time = now
        for line, rule in self._fitting(way):
            if rule.loss and self.random.random() < rule.loss:
                self.lost[way] += 1
                return None
            time += rule.delay
            if rule.rate:
                begins = max(now, self._free.get(line, now))
                if begins - now > _QUEUE_SECONDS:
                    self.lost[way] += 1
                    return None
                self._free[line] = begins + size / rule.rate
                time += self._free[line] - now
        self.late[way] += time > now
        return time

    def _fitting(self, way: Way) -> Iterator[tuple[Way, Rule]]:
        sender, receiver = way
        for line in (way, (sender, EVERY), (EVERY, receiver)):
            if line in self.rules:
                yield line, self.rules[line]
