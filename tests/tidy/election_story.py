"""What three medics say when their leader dies, as a sequence diagram made by the real rules."""

from caudal.medic import election
from caudal.medic.election import ElectionMessage, ElectionState, MessageKind, Step

_MEDICS = (1, 2, 3)
_TICK_SECONDS = 0.1


class _Medics:
    """Medics whose messages arrive at once, in one thread of time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._states: dict[int, ElectionState] = {}
        self._now = 0.0
        for medic in _MEDICS:
            others = tuple(one for one in _MEDICS if one != medic)
            self._take(medic, election.start(medic, others, self._now))

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / _TICK_SECONDS)):
            self._now += _TICK_SECONDS
            for medic in sorted(self._states):
                self._take(medic, election.tick(self._states[medic], self._now))

    def kill(self, medic: int) -> None:
        del self._states[medic]

    def _take(self, medic: int, step: Step) -> None:
        before = self._states.get(medic)
        after, said = step
        self._states[medic] = after
        if before is not None and before.role is not after.role:
            self.lines.append(f"  Note over M{medic}: {after.role}, term {after.term}")
        for message in said:
            self._send(message)

    def _send(self, message: ElectionMessage) -> None:
        if message.kind is not MessageKind.ALIVE:
            way = f"M{message.sender}->>M{message.to}"
            self.lines.append(f"  {way}: {message.kind}, term {message.term}")
        if message.to in self._states:
            to = self._states[message.to]
            self._take(message.to, election.receive(to, message, self._now))


def leader_dies() -> str:
    """Return the diagram: medic 3 leads and dies, medic 2 takes over."""
    medics = _Medics()
    medics.wait(3)
    medics.lines.clear()
    medics.kill(3)
    medics.wait(2.2)
    people = [f"  participant M{medic} as medic {medic}" for medic in _MEDICS]
    head = ["sequenceDiagram", *people, "  Note over M3: leads, then dies"]
    last = max(place for place, line in enumerate(medics.lines) if "ACK" in line)
    return "\n".join([*head, *medics.lines[: last + 1]]) + "\n"
