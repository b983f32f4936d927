"""Which medic leads: the Bully algorithm with numbered terms, as a pure state machine.

Rules
1. The highest medic that is alive leads. Whoever misses the leader asks all higher ones
   (ELECTION); one that is alive says so (ANSWER) and holds an election itself. Who gets no answer
   in time leads, and tells everyone (COORDINATOR) until each has acknowledged (ACK).
2. A leader is heard (ALIVE). One that was not heard for its whole time is missed, and so is one
   whose process is seen to be gone by a medic of its host: then nobody need wait.
3. Every election has a higher term than any that its medic knows. A claim to lead is older or
   newer by its term; an older claim of a higher medic is answered with ELECTION, so that it learns
   the term and claims again; an older claim of a lower one is answered by the leader. A late claim
   of the leader that one follows is no news: answering it would breed claims without end.
4. A medic that starts, or that hears a lower one lead, holds an election: a returning higher
   medic takes the lead again.
5. A medic whose own loop was late knows nothing about the time it missed. If it led, it holds an
   election before it gives another order; if it followed, it gives its leader a full time more.

Two leaders may exist for a while, in a partition or before a message has arrived. That does no
harm: all that a leader does is to order restarts, and those are idempotent.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class MessageKind(StrEnum):
    """What medics say to each other in an election."""

    ELECTION = "ELECTION"
    ANSWER = "ANSWER"
    COORDINATOR = "COORDINATOR"
    ACK = "ACK"
    ALIVE = "ALIVE"


class Role(StrEnum):
    """The state of a medic; the same words in logs and status."""

    FOLLOWING = "following"  # there is a leader, and it was heard lately
    ELECTING = "electing"  # asked the higher ones, waits for an answer
    WAITING = "waiting"  # a higher one answered: it will lead, or bring one that does
    LEADING = "leading"


@dataclass(frozen=True)
class ElectionMessage:
    """One message; `to` and `sender` are medics' ids."""

    kind: MessageKind
    sender: int
    to: int
    term: int


@dataclass(frozen=True)
class ElectionTiming:
    """In seconds. A new leader is found within silence + answer, and a few ticks.

    Within answer and a few ticks where the leader's end was seen.
    """

    alive: float = 0.4  # between two ALIVE of a leader
    silence: float = 1.6  # four missed: the leader is missed
    answer: float = 0.4  # how long to wait for an ANSWER
    coordinator: float = 1.2  # how long to wait for a COORDINATOR after an ANSWER
    late: float = 0.8  # a loop that pauses longer was late itself


@dataclass(frozen=True)
class ElectionState:
    """What one medic knows. `since`: when the role began, or the leader was last heard."""

    me: int
    others: tuple[int, ...]
    timing: ElectionTiming = ElectionTiming()
    role: Role = Role.ELECTING
    term: int = 0
    leader: int | None = None
    since: float = 0.0
    ticked: float = 0.0  # when the loop came by last
    spoke: float = 0.0  # when ALIVE was last sent
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
    """A medic begins: it holds an election at once."""
    return _elect(ElectionState(me, others, timing or ElectionTiming(), ticked=now), now)


def tick(seat: ElectionState, now: float) -> Step:
    """The medic's loop came by; to be called several times in every `alive`."""
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
    """The process of that medic has ended; whoever followed it misses it at once."""
    if seat.role is Role.FOLLOWING and seat.leader == medic:
        return _elect(seat, now)
    return seat, []


def receive(seat: ElectionState, message: ElectionMessage, now: float) -> Step:
    """A message arrived. Anything may come late, twice, or not at all."""
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
    """ELECTION: a lower medic misses its leader, or tells a higher one that its term is old."""
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
    """COORDINATOR or ALIVE: somebody leads, or believes so."""
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
    """To each the claim again until it is acknowledged, then only a sign of life."""
    return replace(seat, spoke=now), [
        seat.says(MessageKind.ALIVE if one in seat.acknowledged else MessageKind.COORDINATOR, one)
        for one in seat.others
    ]
