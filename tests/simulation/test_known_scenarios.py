"""What the simulation found, and what it cannot decide, each as a scenario of its own."""

from dataclasses import replace
from functools import partial

from msgspec import structs

from caudal.formats import job as job_format
from caudal.formats.keys import job_key
from tests.simulation.coverage import Point
from tests.simulation.faults import Aim, Rates
from tests.simulation.stories import Story
from tests.simulation.world import FOREVER, World, finish

QUIET = Rates()
DELETE_JOB = "janitor: rounds > round > _clean > _clean_ended > delete_ended: delete job.json"


def quiet(seed: int, kind: str, aims: tuple[Aim, ...] = ()) -> World:
    """A world in which nothing goes wrong but what the story and the aims say."""
    world = World(seed, (kind,), aims, QUIET)
    world.evils = ()
    return world


def test_a_client_that_leaves_a_gap_and_ends_its_table_expires() -> None:
    """Once, expiry asked only for a missing end: such a job could neither go on nor expire."""
    assert any("expired" in finish(partial(quiet, seed, "gap")).outcomes for seed in range(12))


def test_clocks_that_differ_by_hours_expire_nobody() -> None:
    """Once, the time of a mark was compared with the clock of whoever read it."""

    def skewed(seed: int) -> World:
        world = quiet(seed, "plain")
        world.skews = (-9_000.0, 0.0, 9_000.0)
        world.stories = [_kept(story) for story in world.stories]
        world.faults.begin_outage("broker_error", 40.0)  # so the client is not done at once
        return world

    for seed in range(8):
        states = finish(partial(skewed, seed)).outcomes
        assert "expired" not in states, seed


def _kept(story: Story) -> Story:
    """With such clocks, results that are not kept for good may be kept for hours."""
    options = structs.replace(story.request.options, keep_seconds=FOREVER)
    return replace(story, kept=True, request=structs.replace(story.request, options=options))


def test_a_janitor_that_is_stopped_before_its_last_delete_costs_a_life_and_no_answer() -> None:
    """The known limit (jobs/janitor.py): it was about to delete job.json, slept, and the id was
    given a new life meanwhile. That life is lost, its client begins again, and every answer that
    anybody gets is right."""
    assert any(
        _loses_a_life(quiet(seed, "again", (Aim(Point(DELETE_JOB, "before"), float(seconds)),)))
        for seed in range(6)
        for seconds in range(120, 480, 40)
    )


def _loses_a_life(world: World) -> bool:
    """Whether a job.json was deleted whose life had not ended."""
    delete, lost = world.memory.delete, []

    def watched(key: str, *, lasting: bool = True) -> None:
        for story in world.stories:
            if key == job_key(story.job_id) and key in world.memory._objects:
                run = job_format.decode(world.memory.read(key), key).run
                if (story.job_id, run) not in world.truth.decided:
                    lost.append(run)
        delete(key, lasting=lasting)

    world.memory.delete = watched  # type: ignore[method-assign]
    finish(lambda: world)
    return bool(lost)
