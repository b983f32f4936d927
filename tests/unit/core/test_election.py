"""Transcripts of elections, as people would tell them, and the single rules behind them."""

from dataclasses import replace

import pytest

from caudal.medic.election import (
    ElectionMessage,
    ElectionState,
    ElectionTiming,
    MessageKind,
    Role,
    receive,
    see_gone,
    start,
    tick,
)

TIMING = ElectionTiming()


class Ensemble:
    """Medics whose messages arrive at once; writes down what is said."""

    def __init__(self, *ids: int) -> None:
        self.ids = ids
        self.seats: dict[int, ElectionState] = {}
        self.down: set[int] = set()
        self.now = 0.0
        self.lines: list[str] = []

    def begin(self, medic: int) -> None:
        self.down.discard(medic)
        others = tuple(one for one in self.ids if one != medic)
        self._step(medic, start(medic, others, self.now))

    def kill(self, medic: int) -> None:
        self.down.add(medic)
        self.seats.pop(medic, None)
        self.lines.append(f"{medic} dies")

    def see_gone(self, gone: int) -> None:
        for medic in sorted(self.seats):
            self._step(medic, see_gone(self.seats[medic], gone, self.now))

    def freeze(self, medic: int) -> None:
        self.down.add(medic)
        self.lines.append(f"{medic} freezes")

    def thaw(self, medic: int) -> None:
        self.down.discard(medic)
        self.lines.append(f"{medic} thaws")

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.1)):
            self.now += 0.1
            for medic in sorted(self.seats):
                if medic not in self.down:
                    self._step(medic, tick(self.seats[medic], self.now))

    def _step(self, medic: int, step: tuple[ElectionState, list[ElectionMessage]]) -> None:
        before = self.seats.get(medic)
        self.seats[medic], said = step
        self._note(before, self.seats[medic])
        for message in said:
            if message.kind is not MessageKind.ALIVE:
                self.lines.append(
                    f"{message.sender} to {message.to}: {message.kind} {message.term}"
                )
            if message.to in self.seats and message.to not in self.down:
                self._step(message.to, receive(self.seats[message.to], message, self.now))

    def _note(self, before: ElectionState | None, after: ElectionState) -> None:
        if before is None or (before.role, before.leader) != (after.role, after.leader):
            whom = f" {after.leader}" if after.role is Role.FOLLOWING else ""
            self.lines.append(f"  {after.me} is {after.role}{whom}")


def transcript(ensemble: Ensemble) -> str:
    lines, ensemble.lines = ensemble.lines, []
    return "\n".join(lines)


def settled() -> Ensemble:
    three = Ensemble(1, 2, 3)
    for medic in (1, 2, 3):
        three.begin(medic)
    three.wait(3)
    three.lines.clear()
    return three


def test_the_first_medic_alone_leads_after_waiting_for_an_answer() -> None:
    three = Ensemble(1, 2, 3)
    three.begin(1)
    three.wait(0.5)
    assert transcript(three) == (
        "  1 is electing\n"
        "1 to 2: ELECTION 1\n"
        "1 to 3: ELECTION 1\n"
        "  1 is leading\n"
        "1 to 2: COORDINATOR 1\n"
        "1 to 3: COORDINATOR 1"
    )


# After the third of three has died, however the others came to know.
TAKEN_OVER = (
    "3 dies\n"
    "  1 is electing\n"
    "1 to 2: ELECTION 2\n"
    "  2 is electing\n"
    "2 to 1: ANSWER 2\n"
    "  1 is waiting\n"
    "2 to 3: ELECTION 3\n"
    "1 to 3: ELECTION 2\n"
    "  2 is leading\n"
    "2 to 1: COORDINATOR 3\n"
    "  1 is following 2\n"
    "1 to 2: ACK 3\n"
    "2 to 3: COORDINATOR 3"
)


def test_the_leader_dies_and_the_next_takes_over() -> None:
    three = settled()
    three.kill(3)
    three.wait(2.2)
    assert transcript(three) == TAKEN_OVER


def test_a_leader_whose_end_is_seen_is_missed_at_once() -> None:
    three = settled()
    three.kill(3)
    three.see_gone(3)
    three.wait(0.5)
    assert transcript(three) == TAKEN_OVER


@pytest.mark.parametrize("role", [Role.ELECTING, Role.WAITING, Role.LEADING])
def test_the_end_of_a_medic_that_one_does_not_follow_is_no_news(role: Role) -> None:
    seat = ElectionState(1, (2, 3), role=role, term=4, leader=1 if role is Role.LEADING else None)
    assert see_gone(seat, 3, 1.0) == (seat, [])
    follower = ElectionState(1, (2, 3), role=Role.FOLLOWING, term=4, leader=3)
    assert see_gone(follower, 2, 1.0) == (follower, [])


def test_a_returning_higher_medic_takes_the_lead_again() -> None:
    three = settled()
    three.kill(3)
    three.wait(3)
    three.lines.clear()
    three.begin(3)
    three.wait(1)
    assert [three.seats[one].leader for one in three.ids] == [3, 3, 3]
    assert transcript(three).startswith("  3 is leading\n3 to 1: COORDINATOR 1\n")


def test_a_leader_that_was_frozen_holds_an_election_before_anything_else() -> None:
    three = settled()
    three.freeze(3)
    three.wait(20)
    assert [three.seats[one].leader for one in (1, 2)] == [2, 2]
    three.thaw(3)
    old = three.seats[3].term
    three.wait(0.1)
    assert three.seats[3].role is Role.LEADING
    assert three.seats[3].term > old
    three.wait(1)
    assert [three.seats[one].leader for one in three.ids] == [3, 3, 3]


def test_a_follower_that_was_late_gives_its_leader_a_full_time_more() -> None:
    seat = ElectionState(1, (2, 3), role=Role.FOLLOWING, term=4, leader=3, since=10.0, ticked=10.0)
    after, said = tick(seat, 30.0)
    assert after.role is Role.FOLLOWING
    assert said == []
    for now in (30.5, 31.0, 31.5):
        after, said = tick(after, now)
        assert said == []
    after, said = tick(after, 31.7)
    assert after.role is Role.ELECTING


@pytest.mark.parametrize("role", [Role.ELECTING, Role.WAITING])
def test_an_election_in_which_one_was_late_begins_anew(role: Role) -> None:
    seat = ElectionState(1, (2,), role=role, term=4, since=10.0, ticked=10.0)
    after, said = tick(seat, 30.0)
    assert after.role is Role.ELECTING
    assert after.term == 5
    assert [one.kind for one in said] == [MessageKind.ELECTION]


def test_a_claim_is_repeated_until_it_is_acknowledged() -> None:
    seat, said = start(3, (1, 2), 0.0)
    assert {one.kind for one in said} == {MessageKind.COORDINATOR}
    seat, _ = receive(seat, ElectionMessage(MessageKind.ACK, 1, 3, seat.term), 0.1)
    seat, said = tick(seat, TIMING.alive)
    assert [(one.to, one.kind) for one in said] == [
        (1, MessageKind.ALIVE),
        (2, MessageKind.COORDINATOR),
    ]


def test_an_old_claim_of_a_higher_medic_is_told_the_newer_term() -> None:
    seat = ElectionState(1, (2, 3), role=Role.WAITING, term=9)
    after, said = receive(seat, ElectionMessage(MessageKind.ALIVE, 3, 1, 5), 1.0)
    assert after == seat
    assert said == [ElectionMessage(MessageKind.ELECTION, 1, 3, 9)]
    leader = ElectionState(3, (1, 2), role=Role.LEADING, term=5, leader=3)
    leader, said = receive(leader, said[0], 1.0)
    assert ElectionMessage(MessageKind.COORDINATOR, 3, 1, 10) in said


def test_an_old_claim_of_a_lower_medic_is_answered_by_the_leader() -> None:
    leader = ElectionState(3, (1, 2), role=Role.LEADING, term=9, leader=3)
    after, said = receive(leader, ElectionMessage(MessageKind.ALIVE, 2, 3, 5), 1.0)
    assert after == leader
    assert said == [ElectionMessage(MessageKind.COORDINATOR, 3, 2, 9)]
    follower = replace(leader, role=Role.FOLLOWING, leader=4)
    assert receive(follower, ElectionMessage(MessageKind.ALIVE, 2, 3, 5), 1.0) == (follower, [])


def test_acknowledgements_of_an_earlier_term_do_not_count() -> None:
    leader = ElectionState(3, (1, 2), role=Role.LEADING, term=9, leader=3)
    after, _ = receive(leader, ElectionMessage(MessageKind.ACK, 1, 3, 8), 1.0)
    assert after.acknowledged == frozenset()


@pytest.mark.parametrize("kind", list(MessageKind))
@pytest.mark.parametrize(("sender", "to"), [(4, 2), (3, 1), (2, 2), (1, 3)])
def test_words_of_strangers_and_for_others_change_nothing(
    kind: MessageKind, sender: int, to: int
) -> None:
    """Another host's file may have more medics, or other ids for the same ones."""
    electing, _ = start(2, (1, 3), 0.0)
    leading, _ = tick(electing, electing.timing.answer)
    following, _ = receive(electing, ElectionMessage(MessageKind.ALIVE, 3, 2, 5), 0.1)
    assert {leading.role, following.role} == {Role.LEADING, Role.FOLLOWING}
    for seat in (electing, leading, following):
        assert receive(seat, ElectionMessage(kind, sender, to, 9), 0.6) == (seat, [])
