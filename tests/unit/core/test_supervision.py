"""Whom the leader restarts, and whom it leaves alone."""

import pytest

from caudal.medic.supervision import (
    RestartOrder,
    State,
    SupervisionTiming,
    WatchList,
    admit,
    hear,
    look,
    see,
    state_of,
    tell,
    watch_anew,
)
from caudal.process.pulse import HostRecord, Pulse

T = SupervisionTiming()


def ward(now: float = 0.0) -> WatchList:
    return watch_anew(admit(WatchList(), {"worker-1": T}), now)


class Story:
    """A ward, a clock that goes in steps of a fifth of a second, and what was ordered when."""

    def __init__(self, timing: SupervisionTiming = T) -> None:
        self.ward = watch_anew(admit(WatchList(), {"worker-1": timing}), 0.0)
        self.now = 0.0
        self.orders: list[tuple[float, RestartOrder]] = []
        self.sequence = 0

    def wait(self, seconds: float, *, beating: int | None = None, ready: bool = True) -> "Story":
        for _ in range(round(seconds / 0.2)):
            self.now = round(self.now + 0.2, 1)
            if beating is not None:
                self.sequence += 1
                pulse = Pulse("worker-1", beating, self.sequence, ready=ready)
                self.ward = hear(self.ward, pulse, self.now)
            self.ward, orders = look(self.ward, self.now)
            self.orders += [(self.now, order) for order in orders]
        return self

    def record(
        self,
        incarnation: int,
        *,
        gone: bool = False,
        stopped: bool = False,
        age: float = 0.0,
        stopped_for: float = 0.0,
    ) -> "Story":
        record = HostRecord("worker-1", incarnation, age, gone, stopped, stopped_for=stopped_for)
        self.ward = see(self.ward, record, self.now)
        return self

    @property
    def state(self) -> State:
        return state_of(self.ward, "worker-1", self.now)


def test_restarts_are_counted_from_the_first_after_a_stop() -> None:
    ward = see(Story().ward, HostRecord("worker-1", 7, 0.0, gone=False, first=5), 0.0)
    assert (ward.patients["worker-1"].newest, ward.patients["worker-1"].first) == (7, 5)


def test_a_process_that_is_heard_is_left_alone() -> None:
    story = Story().wait(60, beating=1)
    assert story.orders == []
    assert story.state is State.HEALTHY


def test_four_missed_beats_are_death() -> None:
    story = Story().wait(10, beating=1).wait(1.8)
    assert story.orders == []
    story.wait(0.2)
    assert story.orders == [(12.0, RestartOrder("worker-1", 1))]
    assert story.state is State.STARTING


def test_a_pid_that_is_gone_is_death_at_once_and_once() -> None:
    story = Story().wait(10, beating=1).record(1, gone=True).wait(0.2)
    assert story.orders == [(10.2, RestartOrder("worker-1", 1))]
    story.record(2).wait(2)
    assert len(story.orders) == 1


def test_one_that_is_seen_stopped_is_dead_soon_although_it_may_be_silent_for_long() -> None:
    patient = SupervisionTiming(silence=10.0, start=90.0)
    for heard in (1, None):
        story = Story()
        story.ward = watch_anew(admit(WatchList(), {"worker-1": patient}), 0.0)
        story.wait(4, beating=heard).record(1, stopped=True).wait(T.stopped - 0.2)
        assert story.orders == []
        story.record(1, stopped=True).wait(0.2)
        assert story.orders == [(4.0 + T.stopped, RestartOrder("worker-1", 1))]


def test_one_that_was_stopped_for_a_moment_is_left_alone() -> None:
    story = Story().wait(4, beating=1).record(1, stopped=True).wait(T.stopped - 0.2).record(1)
    story.wait(10, beating=1)
    assert story.orders == []


def test_a_leader_that_has_just_won_does_not_count_anew_how_long_one_is_stopped() -> None:
    story = Story().wait(4, beating=1).record(1, stopped=True).wait(T.stopped - 0.4)
    story.ward = watch_anew(story.ward, story.now)
    story.wait(0.2)
    assert story.orders == []
    story.wait(0.2)
    assert len(story.orders) == 1


def test_a_medic_that_has_just_started_hears_how_long_one_is_stopped() -> None:
    story = Story().wait(0.2).record(1, stopped=True).wait(0.2)
    assert story.orders == []
    story.record(1, stopped=True, stopped_for=T.stopped - 0.2).wait(0.2)
    assert [order.dead for _, order in story.orders] == [1]


def test_one_that_was_stopped_is_well_once_it_is_heard_although_no_medic_tells() -> None:
    """The medics of its host are cut off, or dead."""
    story = Story().wait(4, beating=1).record(1, stopped=True)
    story.wait(10, beating=1)
    assert story.orders == []
    assert story.state is State.HEALTHY


def test_a_heartbeat_sent_before_it_was_stopped_does_not_hide_that() -> None:
    story = Story().wait(4, beating=1).record(1, stopped=True)
    story.ward = hear(story.ward, Pulse("worker-1", 1, 9), story.now + 0.1)
    story.wait(T.stopped + 0.2)
    assert [order.dead for _, order in story.orders] == [1]


def test_a_new_one_that_is_heard_before_its_record_is_not_taken_for_stopped() -> None:
    story = Story().wait(4, beating=1).record(1, stopped=True).wait(T.stopped - 0.4)
    story.ward = hear(story.ward, Pulse("worker-1", 2, 1), story.now)
    story.wait(1.0)
    assert story.orders == []


def test_a_watcher_that_was_late_does_not_know_how_long_one_is_stopped() -> None:
    story = Story().wait(4, beating=1).record(1, stopped=True)
    story.now += 20
    story.wait(0.2).record(1, stopped=True).wait(T.stopped - 0.4)
    assert story.orders == []


def test_medics_tell_since_when_one_is_stopped_and_the_time_never_grows_by_telling() -> None:
    story = Story().wait(4, beating=1).record(1, stopped=True)
    since = story.now
    record = HostRecord("worker-1", 1, 4.0, gone=False, stopped=True)
    wards = [story.ward, Story().ward]
    for number in range(1, 1_000):
        now = since + number * 0.107
        told = tell(wards[(number + 1) % 2], record, now)
        wards[number % 2] = see(wards[number % 2], told, now)
        assert 0.0 <= now - since - told.stopped_for < 0.05
    times = [one.patients["worker-1"].stopped for one in wards]
    assert all(one is not None and one >= since for one in times)
    well = HostRecord("worker-1", 1, 4.0, gone=False)
    assert tell(story.ward, well, 9.0) is well


def test_an_order_that_nobody_carried_out_is_given_again_and_counts_once() -> None:
    story = Story().wait(10, beating=1).record(1, gone=True).wait(T.carry + 1)
    assert [round(when, 1) for when, _ in story.orders] == [10.2, 13.2]
    assert story.ward.patients["worker-1"].deaths == 1


def test_one_that_cannot_be_started_is_shown_as_failing() -> None:
    """Its medic finds a mistake in cluster.toml or a full disk: no new incarnation begins."""
    story = Story().wait(10, beating=1).record(1, gone=True)
    assert story.wait(T.carry).state == State.STARTING
    assert story.wait(T.carry * T.failing).state == State.FAILING
    assert story.record(2).state == State.STARTING


def test_nobody_is_suspected_before_one_full_timeout_was_watched() -> None:
    story = Story().wait(1.8)
    assert story.orders == []
    story.wait(0.2)
    assert story.orders == [(2.0, RestartOrder("worker-1", 0))]


def test_a_watcher_that_was_late_begins_to_watch_anew() -> None:
    story = Story().wait(10, beating=1)
    story.now += 20
    story.wait(1.8)
    assert story.orders == []
    story.wait(10, beating=1)
    assert story.orders == []


def test_a_process_that_begins_has_time_to_be_heard() -> None:
    story = Story().wait(10, beating=1).wait(2.0)
    story.record(2).wait(T.start - 1)
    assert len(story.orders) == 1
    states = [story.state]
    story.wait(2, beating=2)
    assert len(story.orders) == 1
    assert [*states, story.state] == [State.STARTING, State.HEALTHY]


def test_one_that_beats_while_it_loads_is_left_alone_and_not_yet_healthy() -> None:
    story = Story().wait(10, beating=1).record(1, gone=True).wait(0.2).record(2)
    story.wait(60, beating=2, ready=False)
    assert len(story.orders) == 1
    assert story.state is State.STARTING
    assert story.wait(0.2, beating=2).state is State.HEALTHY


def test_one_that_is_frozen_while_it_loads_is_dead_after_four_missed_beats() -> None:
    story = Story().wait(10, beating=1).record(1, gone=True).wait(0.2).record(2)
    story.wait(1, beating=2, ready=False).wait(T.silence)
    assert [order.dead for _, order in story.orders] == [1, 2]


def test_one_that_announced_a_long_silence_is_dead_only_after_it() -> None:
    story = Story().wait(10, beating=1).record(1, gone=True).wait(0.2).record(2)
    quiet = Pulse("worker-1", 2, 999, ready=False, quiet=60.0)
    story.ward = hear(story.ward, quiet, story.now)
    story.wait(59)
    assert len(story.orders) == 1
    assert story.state is State.STARTING
    story.wait(2)
    assert [order.dead for _, order in story.orders] == [1, 2]


@pytest.mark.parametrize("fault", ["gone", "stopped"])
def test_whoever_announced_a_long_silence_is_still_seen_to_be_gone_or_stopped(fault: str) -> None:
    story = Story().wait(10, beating=1)
    quiet = Pulse("worker-1", 1, 999, ready=False, quiet=60.0)
    story.ward = hear(story.ward, quiet, story.now)
    story.record(1, gone=fault == "gone", stopped=fault == "stopped").wait(T.stopped + 0.2)
    assert [order.dead for _, order in story.orders] == [1]


def test_loading_for_long_is_no_forgiveness() -> None:
    story = Story().wait(10, beating=1).record(1, gone=True).wait(0.2).record(2)
    story.wait(2 * T.stable, beating=2, ready=False)
    assert story.ward.patients["worker-1"].deaths == 1


def test_who_died_unheard_is_given_twice_the_time() -> None:
    story = Story().wait(10, beating=1).wait(2.0)
    times = []
    for incarnation in (2, 3, 4):
        story.record(incarnation)
        began = story.now
        while story.orders[-1][1].dead < incarnation:
            story.wait(0.2)
        times.append(round(story.now - began))
    assert times == [T.start, 2 * T.start, 4 * T.start]


def test_one_that_never_is_heard_is_started_again() -> None:
    story = Story().wait(10, beating=1).wait(2.0).record(2).wait(T.start + 1)
    assert [order.dead for _, order in story.orders] == [1, 2]


def test_a_leader_that_never_heard_a_frozen_process_learns_its_incarnation_from_the_record() -> (
    None
):
    story = Story().record(7, age=100.0).wait(2.0)
    assert story.orders == [(2.0, RestartOrder("worker-1", 7))]


def test_restarts_back_off_and_what_keeps_dying_is_shown() -> None:
    story = Story().wait(10, beating=1)
    incarnation = 1
    for _ in range(1_500):
        story.record(incarnation, gone=True).wait(0.2)
        incarnation = 1 + len(story.orders)
    gaps = [b[0] - a[0] for a, b in zip(story.orders, story.orders[1:], strict=False)]
    assert gaps[: T.at_once - 1] == pytest.approx([0.2] * (T.at_once - 1))  # one look later
    later = [int(gap * 2) / 2 for gap in gaps[T.at_once - 1 :]]
    assert later[:8] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert story.state is State.FAILING


def test_a_long_healthy_life_is_forgiveness() -> None:
    story = Story().wait(10, beating=1)
    for incarnation in (1, 2, 3):
        story.record(incarnation, gone=True).wait(0.2).record(incarnation + 1)
        story.wait(T.stable + 1, beating=incarnation + 1)
    gap = T.stable + 1.2
    assert [round(when - 10.2, 1) for when, _ in story.orders] == [0.0, gap, 2 * gap]
    assert story.ward.patients["worker-1"].deaths == 0
    assert story.ward.patients["worker-1"].restarts == 3


def test_late_doubled_and_replayed_heartbeats_change_nothing() -> None:
    story = Story().wait(10, beating=3)
    old = [Pulse("worker-1", 3, 1), Pulse("worker-1", 3, story.sequence), Pulse("worker-1", 2, 999)]
    for pulse in old:
        assert hear(story.ward, pulse, 11.0) is story.ward
    assert hear(story.ward, Pulse("stranger", 1, 1), 11.0) is story.ward


def test_a_late_heartbeat_of_the_one_before_does_not_make_the_new_one_healthy() -> None:
    """A medic that does not lead has ordered nothing; it knows the new one from the record."""
    known = hear(ward(), Pulse("worker-1", 5, 8), 1.0)
    known = see(known, HostRecord("worker-1", 6, 0.0, gone=False), 2.0)
    known = hear(known, Pulse("worker-1", 5, 9), 2.1)
    assert state_of(known, "worker-1", 2.2) is State.STARTING
    known = hear(known, Pulse("worker-1", 6, 1), 2.5)
    assert state_of(known, "worker-1", 2.6) is State.HEALTHY


def test_the_last_breath_of_one_that_is_being_replaced_does_not_count() -> None:
    story = Story().wait(10, beating=1).wait(2.0)
    assert hear(story.ward, Pulse("worker-1", 1, 999), 12.5) is story.ward


def test_one_that_goes_on_although_it_was_called_dead_is_left_alone() -> None:
    story = Story().wait(10, beating=1).wait(2.0)
    assert len(story.orders) == 1
    story.wait(60, beating=1)
    assert len(story.orders) == 1
    assert story.state is State.HEALTHY


def test_one_with_a_long_silence_is_heard_again_although_the_order_is_repeated() -> None:
    """A leader was cut off from a broker: its orders are refused, and it hears the broker again."""
    patient = SupervisionTiming(silence=10.0, start=90.0)
    story = Story(patient).wait(10, beating=1).wait(12)
    assert len(story.orders) > 0
    story.wait(30, beating=1)
    assert story.state is State.HEALTHY
    ordered = len(story.orders)
    story.wait(60, beating=1)
    assert len(story.orders) == ordered


def test_a_record_that_says_nothing_new_changes_nothing() -> None:
    known = see(ward(), HostRecord("worker-1", 1, 5.0, False), 10.0)
    for record in (HostRecord("worker-1", 1, 6.0, False), HostRecord("worker-1", 1, 9.0, True)):
        known = see(known, record, 11.0)
        assert see(known, record, 12.0) is known
