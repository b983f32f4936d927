"""When tasks are published again, and when a client counts as gone."""

from collections.abc import Mapping

from tests.unit.core.test_readiness import SHAPE, Known

from caudal.formats.keys import Lane, Message, Task
from caudal.jobs.reconcile import awaits_client
from caudal.jobs.watch import (
    Beating,
    Patience,
    Watch,
    beating,
    is_silent,
    is_stuck,
    not_computed,
    observe,
    published,
    that_fit,
)

PATIENCE = Patience(first=10.0, most=35.0, silent=100.0)
LACKING = (Task("map", "a", 0),)


def look(watch: Watch | None, now: float, heard: tuple[str, ...] = ()) -> Watch:
    return observe(watch, now, LACKING, heard, PATIENCE)


def test_patience_doubles_up_to_its_bound_and_starts_anew() -> None:
    watch, now, waits = look(None, 0.0), 0.0, []
    for _ in range(4):
        began = now
        while not is_stuck(watch):
            now += 5.0
            watch = look(watch, now)
        waits.append(now - began)
        watch = published(watch, PATIENCE)
    assert waits == [10.0, 20.0, 35.0, 35.0]
    moved = observe(watch, now + 1, (Task("map", "a", 1),), (), PATIENCE)
    assert moved.patience == 10.0
    assert not is_stuck(moved)


def test_a_job_that_lacks_nothing_is_not_stuck() -> None:
    watch = observe(None, 0.0, (), (), PATIENCE)
    assert not is_stuck(observe(watch, 40.0, (), (), PATIENCE))


def test_silence_is_measured_by_the_watchers_own_clock() -> None:
    watch = look(None, 0.0)
    for now in (40.0, 80.0):
        watch = look(watch, now)
        assert not is_silent(watch, PATIENCE)
    assert is_silent(look(watch, 100.0), PATIENCE)
    heard = look(watch, 100.0, heard=("0000000001-g",))
    assert not is_silent(heard, PATIENCE)


def test_a_watcher_that_was_late_begins_anew() -> None:
    watch = look(look(None, 0.0), 49.0)
    late = look(watch, 149.0)
    assert not is_silent(late, PATIENCE)
    assert not is_stuck(late)


def test_only_nearly_empty_lanes_are_filled() -> None:
    depths = dict.fromkeys(Lane, 0) | {Lane.LATE: 50}
    tasks = (Task("map", "a", 0), Task("map", "a", 500), Task("finish", "q"))
    messages = [Message("j", "r", task) for task in tasks]
    assert that_fit(messages, depths, 50) == [messages[0], messages[2]]
    assert that_fit(messages, depths, 51) == messages


def test_a_task_whose_marks_change_is_not_missing() -> None:
    """Whose clock wrote them does not matter: only that they changed while the watcher looked."""
    task, other = Task("finish", "q"), Task("finish", "r")

    def left(beats: Mapping[Task, Beating], now: float) -> tuple[Task, ...]:
        return not_computed((task, other), beats, now, 16.0)

    first = beating({}, {task: ("000001-w",)}, 100.0)
    assert left(first, 100.0) == (other,)
    same = beating(first, {task: ("000001-w",)}, 115.0)
    assert left(same, 115.0) == (other,)
    assert left(same, 116.0) == (task, other)
    moved = beating(same, {task: ("000002-w",)}, 117.0)
    assert left(moved, 130.0) == (other,)
    assert left(beating(moved, {}, 131.0), 131.0) == (task, other)


def test_what_only_the_client_can_send() -> None:
    facts = Known(ends={"a": 2, "b": 0}, sent={("a", 0), ("a", 1)})
    assert not awaits_client(SHAPE, facts)
    facts.sent.discard(("a", 1))
    assert awaits_client(SHAPE, facts)
    facts.done.add(Task("merge", "a", 0))
    assert not awaits_client(SHAPE, facts)
    del facts.ends["b"]
    assert awaits_client(SHAPE, facts)
