"""Leader election of medics: the Bully algorithm with numbered terms, as a pure state machine.

Rules
1. The live medic with the highest id leads. A medic that misses the leader asks all higher ones
   (ELECTION). A live one answers (ANSWER) and holds an election itself. A medic that gets no
   answer in time leads, and tells everyone (COORDINATOR) until each has acknowledged (ACK).
2. A leader sends signs of life (ALIVE). It is missed if nothing was heard of it for `silence`
   seconds. It is also missed, without waiting, if a medic of its host sees that its process is
   gone.
3. Every election has a higher term than any that its medic knows. Terms order claims to lead. An
   older claim of a higher medic is answered with ELECTION, so that it learns the term and claims
   again. An older claim of a lower medic is answered by the leader. A late claim of the leader
   that a medic already follows is ignored: an answer would cause claims without end.
4. A medic holds an election when it starts, and when it hears that a lower one leads. So a
   returning higher medic takes the lead again.
5. A medic whose own loop was late knows nothing about the time it missed. If it led, it holds an
   election before it gives another order. If it followed, it waits another full `silence` for its
   leader.
6. Hosts may have other files for a while (a host is added, one after the other is started anew).
   A message of a medic that is not known here, or to another id than this medic's, changes nothing.

Two leaders may exist for a while, in a partition or before a message has arrived. This is
harmless: a leader only orders restarts, and these are idempotent.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class MessageKind(StrEnum):
    """The messages of an election."""

    ELECTION = "ELECTION"
    ANSWER = "ANSWER"
    COORDINATOR = "COORDINATOR"
    ACK = "ACK"
    ALIVE = "ALIVE"


class Role(StrEnum):
    """The role of a medic, with the same names in logs and status."""

    FOLLOWING = "following"  # there is a leader, and it was heard recently
    ELECTING = "electing"  # has asked the higher medics and waits for an answer
    WAITING = "waiting"  # a higher medic answered: it will lead, or find a leader
    LEADING = "leading"


@dataclass(frozen=True)
class ElectionMessage:
    """One message; `to` and `sender` are ids of medics."""

    kind: MessageKind
    sender: int
    to: int
    term: int


@dataclass(frozen=True)
class ElectionTiming:
    """Times in seconds.

    A new leader is found within silence + answer and a few ticks. If a medic saw the leader's end,
    it is found within answer and a few ticks.
    """

    alive: float = 0.4  # between two ALIVE of a leader
    silence: float = 1.6  # four missed ALIVE: the leader is missed
    answer: float = 0.4  # longest wait for an ANSWER
    coordinator: float = 1.2  # longest wait for a COORDINATOR after an ANSWER
    late: float = 0.8  # the own loop was late if it paused longer


@dataclass(frozen=True)
class ElectionState:
    """The knowledge of one medic. `since`: start of the role, or the leader's last sign of life."""

    me: int
    others: tuple[int, ...]
    timing: ElectionTiming = ElectionTiming()
    role: Role = Role.ELECTING
    term: int = 0
    leader: int | None = None
    since: float = 0.0
    ticked: float = 0.0  # time of the last tick
    spoke: float = 0.0  # time of the last ALIVE sent
    acknowledged: frozenset[int] = frozenset()

    @property
    def higher(self) -> tuple[int, ...]:
        return tuple(one for one in self.others if one > self.me)

    def says(self, kind: MessageKind, to: int) -> ElectionMessage:
        return ElectionMessage(kind, self.me, to, self.term)


Step = tuple[ElectionState, list[ElectionMessage]]


def start(
    me: int, others: tuple[int, ...], now: float, timing: ElectionTiming | None = None
) -> Step:
    """Start a medic: it holds an election at once."""
    return _elect(ElectionState(me, others, timing or ElectionTiming(), ticked=now), now)


def tick(seat: ElectionState, now: float) -> Step:
    """Handle a tick of the medic's loop; call it several times in every `alive`."""
    was_late = now - seat.ticked > seat.timing.late
    seat = replace(seat, ticked=now)
    if was_late:
        return (replace(seat, since=now), []) if seat.role is Role.FOLLOWING else _elect(seat, now)
    waited, timing = now - seat.since, seat.timing
    match seat.role:
        case Role.LEADING:
            return _be_heard(seat, now) if now - seat.spoke >= timing.alive else (seat, [])
        case Role.ELECTING if waited >= timing.answer:
            return _lead(seat, now)
        case Role.WAITING if waited >= timing.coordinator:
            return _elect(seat, now)
        case Role.FOLLOWING if waited >= timing.silence:
            return _elect(seat, now)
    return seat, []


def see_gone(seat: ElectionState, medic: int, now: float) -> Step:
    """Handle the end of that medic's process; its followers miss it at once."""
    if seat.role is Role.FOLLOWING and seat.leader == medic:
        return _elect(seat, now)
    return seat, []


def receive(seat: ElectionState, message: ElectionMessage, now: float) -> Step:
    """Handle a message. Messages may come late, twice, or not at all."""
    if message.to != seat.me or message.sender not in seat.others:
        return seat, []
    match message.kind:
        case MessageKind.ELECTION:
            return _asked(seat, message, now)
        case MessageKind.ANSWER:
            return _answered(seat, message, now)
        case MessageKind.COORDINATOR | MessageKind.ALIVE:
            return _claimed(seat, message, now)
        case MessageKind.ACK:
            if seat.role is Role.LEADING and message.term == seat.term:
                known = seat.acknowledged | {message.sender}
                seat = replace(seat, acknowledged=known)
    return seat, []


def _asked(seat: ElectionState, message: ElectionMessage, now: float) -> Step:
    """Handle ELECTION: a lower medic misses its leader, or tells this one that its term is old."""
    if message.sender > seat.me:
        return seat, []
    newest = replace(seat, term=max(seat.term, message.term))
    answer = newest.says(MessageKind.ANSWER, message.sender)
    if seat.role is Role.LEADING and message.term <= seat.term:
        after, said = seat, [seat.says(MessageKind.COORDINATOR, message.sender)]
    elif seat.role is Role.LEADING:
        after, said = _lead(replace(newest, term=newest.term + 1), now)
    elif seat.role is Role.FOLLOWING:
        after, said = _elect(newest, now)
    else:
        after, said = newest, []
    return after, [answer, *said]


def _answered(seat: ElectionState, message: ElectionMessage, now: float) -> Step:
    newest = replace(seat, term=max(seat.term, message.term))
    if seat.role is not Role.ELECTING or message.sender < seat.me:
        return newest, []
    return replace(newest, role=Role.WAITING, since=now), []


def _claimed(seat: ElectionState, message: ElectionMessage, now: float) -> Step:
    """Handle COORDINATOR or ALIVE: the sender leads, or believes so."""
    if message.term < seat.term:
        return _claimed_of_old(seat, message)
    if message.sender < seat.me:
        return _elect(replace(seat, term=message.term), now)
    after = replace(seat, role=Role.FOLLOWING, leader=message.sender, term=message.term, since=now)
    acknowledges = message.kind is MessageKind.COORDINATOR
    return after, [after.says(MessageKind.ACK, message.sender)] if acknowledges else []


def _claimed_of_old(seat: ElectionState, message: ElectionMessage) -> Step:
    if message.sender == seat.leader:
        return seat, []  # only late: its newer claim was heard
    if message.sender > seat.me:
        return seat, [seat.says(MessageKind.ELECTION, message.sender)]
    if seat.role is Role.LEADING:
        return seat, [seat.says(MessageKind.COORDINATOR, message.sender)]
    return seat, []


def _elect(seat: ElectionState, now: float) -> Step:
    asking = replace(seat, role=Role.ELECTING, term=seat.term + 1, leader=None, since=now)
    if not asking.higher:
        return _lead(asking, now)
    return asking, [asking.says(MessageKind.ELECTION, one) for one in asking.higher]


def _lead(seat: ElectionState, now: float) -> Step:
    leading = replace(seat, role=Role.LEADING, leader=seat.me, since=now, acknowledged=frozenset())
    return _be_heard(leading, now)


def _be_heard(seat: ElectionState, now: float) -> Step:
    """Send the claim to each medic until it is acknowledged, after that a sign of life."""
    return replace(seat, spoke=now), [
        seat.says(MessageKind.ALIVE if one in seat.acknowledged else MessageKind.COORDINATOR, one)
        for one in seat.others
    ]
