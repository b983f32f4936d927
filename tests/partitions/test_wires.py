"""What the network does to frames, and what is said about medics: the pure parts of the trial."""

from random import Random

import pytest

from tests.partitions.faults import NAMES, injection
from tests.partitions.judging import (
    Deed,
    DoubleLead,
    RoleChange,
    deeds,
    double_lead,
    longest_pause,
)
from tests.partitions.switch import decoded, encoded
from tests.partitions.wires import EVERY, Rule, Way, Wires


def wires(rules: dict[Way, Rule], seed: int = 1) -> Wires:
    return Wires(Random(seed), rules)


def test_without_rules_every_frame_leaves_at_once() -> None:
    assert wires({}).leaves(("a", "b"), 1500, 7.0) == 7.0


def test_a_cut_has_a_direction() -> None:
    cut = wires({("a", EVERY): Rule.cut()})
    assert cut.leaves(("a", "b"), 100, 0.0) is None
    assert cut.leaves(("b", "a"), 100, 0.0) == 0.0
    assert cut.lost == {("a", "b"): 1}


def test_the_same_seed_loses_the_same_frames() -> None:
    def lost(seed: int) -> list[bool]:
        lossy = wires({("a", "b"): Rule(loss=0.2)}, seed)
        return [lossy.leaves(("a", "b"), 100, 0.0) is None for _ in range(1000)]

    assert lost(3) == lost(3)
    assert lost(3) != lost(4)
    assert 150 < sum(lost(3)) < 250


def test_delays_of_both_hosts_add_up_and_nothing_overtakes() -> None:
    slow = wires({("a", EVERY): Rule(delay=0.3), (EVERY, "b"): Rule(delay=0.1)})
    assert slow.leaves(("a", "b"), 100, 1.0) == pytest.approx(1.4)
    assert slow.leaves(("a", "b"), 100, 1.1) == pytest.approx(1.5)


def test_a_slow_line_queues_and_then_loses() -> None:
    slow = wires({("a", EVERY): Rule(rate=1000.0)})
    assert slow.leaves(("a", "b"), 500, 0.0) == pytest.approx(0.5)
    assert slow.leaves(("a", "c"), 700, 0.0) == pytest.approx(1.2)  # the line of a, to whomever
    assert slow.leaves(("a", "b"), 100, 0.0) is None
    assert slow.leaves(("a", "b"), 100, 5.0) == pytest.approx(5.1)


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_follows_from_its_seed_and_does_something(name: str) -> None:
    one = injection(name, Random(5))
    assert one == injection(name, Random(5))
    assert one.rules or one.kills or one.downs or one.clock or one.restarts
    assert decoded(encoded(one.rules)) == one.rules


def test_two_leaders_are_counted_within_the_span_only() -> None:
    changes = [
        RoleChange(1.0, "c", True),
        RoleChange(5.0, "b", True),
        RoleChange(8.0, "c", False),
        RoleChange(9.0, "c", True),
        RoleChange(30.0, "a", True),
    ]
    assert double_lead(changes, 4.0, 10.0) == DoubleLead(times=2, seconds=4.0, most=2)
    assert double_lead(changes, 0.0, 4.0) == DoubleLead(times=0, seconds=0.0, most=1)
    assert double_lead(changes, 6.0, 7.0) == DoubleLead(times=0, seconds=1.0, most=2)


def test_what_medics_did_is_read_from_their_logs() -> None:
    head = "2026-11-16T12:00:00.000Z warning medic medic-1.a: "
    lines = [
        f"{head}restart ordered process=worker-1.a dead=1 by=medic-1.a",
        f"{head}order refused process=x dead=1 term=3 reason=the process is well",
        f"{head}killed a process that hung process=worker-1.a incarnation=1",
        f"{head}started process=worker-1.a incarnation=2",
        f"{head}role changed role=leading term=3 leader=medic-1.a",
    ]
    assert deeds(lines) == [
        Deed("ordered", "worker-1.a"),
        Deed("refused", "x"),
        Deed("killed", "worker-1.a"),
        Deed("started", "worker-1.a"),
    ]


def test_the_longest_pause_counts_both_ends() -> None:
    assert longest_pause([2.0, 3.0, 99.0], 0.0, 10.0) == 7.0
    assert longest_pause([], 1.0, 5.0) == 4.0
