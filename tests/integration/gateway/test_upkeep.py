"""The reconciler and the janitor: restraint while queues are long, and threads that do not die."""

import itertools
import random
import threading
from dataclasses import replace

from tests.harness.gateway_place import Place, batches, create
from tests.harness.hand_clock import HandClock

from caudal.formats.keys import Lane, Task
from caudal.gateway.figures import GatewayMetrics
from caudal.gateway.upkeep import CountingBroker, Pauses, UnevenClock, start_upkeep
from caudal.jobs.ports import Bounds
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns
from caudal.process.clock import SystemClock
from caudal.process.signals import Stop

BATCHES = 700


def fill(place: Place, count: int = BATCHES) -> None:
    """A job with many batches that nobody has mapped yet: their objects and their messages."""
    create(place.client())
    job_run = place.service.gateway.watch("j", "alice")
    for number in range(count):
        place.store.create(job_run.keys.batch("people", number), batches("people")[0])
        place.service.gateway._publish(job_run, [_map(number)])


def _map(number: int) -> Task:
    return Task("map", "people", number)


def test_a_long_queue_gets_no_storm_of_duplicates(place: Place) -> None:
    """Nobody works for ten hours, three gateways look every second."""
    fill(place)
    clock, figures = HandClock(), GatewayMetrics()
    ports = replace(place.ports, clock=clock, broker=CountingBroker(place.broker, figures))
    reconcilers = [Reconciler(replace(ports, job_runs=JobRuns(place.store))) for _ in range(3)]
    late = place.broker.depths()[Lane.LATE]
    for _ in range(1200):
        for reconciler in reconcilers:
            reconciler.round()
        clock.time += 30
    depths, bound = place.broker.depths(), Bounds().nearly_empty
    assert late > bound
    assert depths[Lane.LATE] == late, "what waits in a long queue is not published again"
    for lane, own in ((Lane.FIRST, 4), (Lane.EARLY, 12), (Lane.MIDDLE, 48)):
        assert own < depths[lane] < bound + 3 * own, "a short one is filled up, and no further"
    assert figures.published_again._value.get() == sum(depths.values()) - BATCHES


def test_an_empty_queue_is_filled_piece_by_piece_with_growing_patience(place: Place) -> None:
    fill(place)
    place.broker.wipe()
    clock = HandClock()
    reconciler = Reconciler(replace(place.ports, clock=clock))
    published = []
    for _ in range(200):
        reconciler.round()
        waiting = sum(place.broker.depths().values())
        place.broker.wipe()  # it is lost again and again
        if waiting:
            published.append((clock.time, waiting))
        clock.time += 1
    assert max(waiting for _, waiting in published) == 256, "a round is bounded"
    times = [time for time, _ in published]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 4 * gaps[0], "and rounds that change nothing become rare"


def test_the_real_threads_publish_what_is_lost_and_nothing_else(place: Place) -> None:
    fill(place)
    for lane in (Lane.FIRST, Lane.EARLY, Lane.MIDDLE):
        while place.broker.pop(lane):
            pass
    figures, stop, looked = GatewayMetrics(), Stop(), threading.Event()
    bounds = Bounds(patience_seconds=0.05, patience_most_seconds=0.1)
    ports = replace(place.ports, clock=SystemClock(stop), bounds=bounds)

    def rounds() -> float:
        return float(figures.rounds.labels("reconciler", "done")._value.get())

    threads = start_upkeep(ports, figures, stop.requested, Pauses(0.02, 0.02, 0.02), lambda: None)
    while rounds() < 20:
        assert not looked.wait(0.01)
    stop.request("enough was seen")
    for thread in threads:
        thread.join()
    depths = place.broker.depths()
    assert depths[Lane.FIRST] >= 4
    assert depths[Lane.MIDDLE] >= 48
    assert max(depths[lane] for lane in (Lane.FIRST, Lane.EARLY, Lane.MIDDLE)) < 64 + 48
    assert depths[Lane.LATE] == BATCHES - 64


def test_a_round_that_fails_is_not_the_last(place: Place) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            raise ZeroDivisionError(name)

    figures, stop, looked = GatewayMetrics(), Stop(), threading.Event()
    ports = replace(place.ports, clock=SystemClock(stop), store=Broken())  # type: ignore[arg-type]
    threads = start_upkeep(ports, figures, stop.requested, Pauses(0.01, 0.01, 0.01), lambda: None)
    while figures.rounds.labels("janitor", "failed")._value.get() < 3:
        assert not looked.wait(0.01)
    stop.request("enough was seen")
    for thread in threads:
        thread.join()


def test_pauses_are_uneven_and_longer_after_long_rounds() -> None:
    clock = HandClock()
    uneven = UnevenClock(clock, random.Random(3))
    for _ in range(50):
        uneven.sleep(1.0)
    assert all(0.75 <= pause <= 1.25 for pause in clock.slept)
    assert len(set(clock.slept)) == 50
    clock.time += 30.0
    uneven.sleep(1.0)
    assert 45 <= clock.slept[-1] <= 75
