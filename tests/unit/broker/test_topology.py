"""Names and properties of queues."""

import random

import pytest

from caudal.broker import topology
from caudal.broker.backoff import MOST_SECONDS, pause_seconds
from caudal.formats import job
from caudal.formats import message as message_format
from caudal.formats.keys import Lane
from caudal.jobs.ports import Bounds
from caudal.sql.planner.plan import FORMAT as PLAN_FORMAT


def test_names_carry_prefix_version_and_lane() -> None:
    assert topology.queue_name("caudal", Lane.FIRST) == "caudal.1.map-0"


def test_whoever_raises_the_format_of_jobs_or_plans_raises_that_of_messages() -> None:
    formats = {1: (1, 1)}  # of messages: of jobs, of plans
    assert formats[message_format.FORMAT] == (job.FORMAT, PLAN_FORMAT)


@pytest.mark.parametrize(
    ("server", "limit"),
    [("3.10.8", None), ("3.13.7", None), ("4.0.1", -1), ("4.1", -1), ("10.0", -1), ("", None)],
)
def test_nothing_is_dropped_whatever_the_server(server: str, limit: int | None) -> None:
    arguments = topology.queue_arguments(Lane.FOLD, server, 5)
    assert arguments.get("x-delivery-limit") == limit
    assert arguments["x-queue-type"] == "quorum"
    assert "x-max-length" not in arguments


def test_deliveries_are_counted_whatever_the_server_calls_them() -> None:
    for headers, count in (
        ({}, 0),
        ({"x-delivery-count": 3}, 3),
        ({"x-delivery-count": 0, "x-acquired-count": 2}, 2),
        ({"x-delivery-count": "many"}, 0),
    ):
        assert topology.earlier_deliveries(headers) == count


def test_lanes_of_map_tasks_are_bounded_and_refuse() -> None:
    for lane in topology.MAP_LANES:
        arguments = topology.queue_arguments(lane, "3.10.8", 5)
        assert (arguments["x-max-length"], arguments["x-overflow"]) == (5, "reject-publish")


def test_gateways_refuse_well_before_the_lanes_do() -> None:
    assert Bounds().lane_limit * 2 <= topology.LANE_LIMIT


def test_pauses_grow_to_a_bound_and_differ() -> None:
    chance = random.Random(1)
    pauses = [pause_seconds(failures, chance) for failures in range(1, 2_000)]
    assert 0.05 <= pauses[0] <= 0.1
    assert all(MOST_SECONDS / 2 <= pause <= MOST_SECONDS for pause in pauses[10:])
    assert len(set(pauses)) > 1_000
