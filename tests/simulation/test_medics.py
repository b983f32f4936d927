"""Whatever happened before: in peace one medic leads, everyone follows it, everything runs."""

import pytest

from caudal.medic.election import Role
from tests.simulation.medics import World


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_after_any_faults_the_highest_medic_leads_and_everything_runs(first: int) -> None:
    for seed in range(first, first + 30):
        world = World(seed)
        world.run(60, faults=True)
        world.run(30, faults=False)
        told = f"seed {seed}\n" + "\n".join(world.report.trace[-60:])
        highest = max(world.ids)
        seats = {one: medic.seat for one, medic in world.medics.items()}
        assert {seat.leader for seat in seats.values()} == {highest}, told
        assert {one for one, seat in seats.items() if seat.role is Role.LEADING} == {highest}, told
        assert not any(one.dead or one.frozen for one in world.patients.values()), told


def test_in_peace_a_leader_stays_and_nobody_is_restarted() -> None:
    for seed in range(20):
        world = World(seed, medics=3)
        world.run(5, faults=False)
        settled = list(world.report.trace)
        world.run(60, faults=False)
        assert world.report.trace == settled
        assert world.report.restarts == 0
        assert {medic.seat.leader for medic in world.medics.values()} == {3}


def test_a_frozen_leader_wakes_up_and_restarts_nobody_who_is_well() -> None:
    world = World(7, medics=3)
    world.run(5, faults=False)
    world.medics[3].frozen_until = world.now + 20
    world.run(40, faults=True, breaking=False)
    assert world.report.needless == 0
    assert {medic.seat.leader for medic in world.medics.values()} == {3}


def test_the_faults_do_happen() -> None:
    reports = []
    for seed in range(30):
        world = World(seed)
        world.run(60, faults=True)
        reports.append(world.report)
    assert max(one.leaders_at_once for one in reports) >= 2  # partitions do make two leaders
    assert sum(one.elections for one in reports) > 100
    assert sum(one.restarts for one in reports) > 30
    assert sum(one.refused for one in reports) > 0  # orders do arrive late
    assert sum(one.needless for one in reports) == 0


def test_the_same_seed_gives_the_same_run() -> None:
    def trace(seed: int) -> list[str]:
        world = World(seed)
        world.run(60, faults=True)
        return world.report.trace

    assert trace(11) == trace(11)
    assert trace(11) != trace(12)
