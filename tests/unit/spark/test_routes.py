"""Addresses of tasks, and who reads which slice."""

from pathlib import Path

import pytest

from caudal.application import find_application
from caudal.duck.job_plan import make_plan
from caudal.formats.keys import Task
from caudal.kernels.sentiment import load_model
from caudal.spark.routes import Routes


@pytest.fixture(scope="module", params=["books", "movies"])
def routes(request: pytest.FixtureRequest) -> Routes:
    app = find_application(request.param)
    return Routes(make_plan(app, None, {}, load_model("lexicon")), 3)


def test_levels_and_finishes_cover_all_addresses_once(routes: Routes) -> None:
    covered = [address for some in (*routes.levels, routes.finishes) for address in some]
    assert covered == list(range(len(routes.tasks)))
    assert len(set(routes.tasks)) == len(routes.tasks)
    assert {routes.tasks[one].name for one in routes.finishes} == {f"q{n}" for n in range(1, 6)}


def test_a_fold_reads_only_earlier_levels(routes: Routes) -> None:
    known = {scan.name for scan in routes.split.plan.scans}
    for level in routes.levels:
        tasks = [routes.tasks[address] for address in level]
        assert all(known.issuperset(routes.inputs(task)) for task in tasks)
        known |= {task.name for task in tasks}
    assert known == {stage.name for stage in routes.split.plan.stages()}


def test_every_slice_of_a_hashed_stage_is_read_by_its_partition(routes: Routes) -> None:
    for fold in (one for one in routes.split.plan.folds if one.partitions == "all"):
        for stage in fold.inputs:
            for number in range(3):
                task = routes.tasks.index(Task("fold", fold.name, number))
                others = [routes.tasks.index(Task("fold", fold.name, n)) for n in range(3)]
                others.remove(task)
                assert task in routes.readers(stage, number, 3)
                assert not set(others) & set(routes.readers(stage, number, 3))


def test_a_gathered_stage_is_read_by_all_its_readers(routes: Routes) -> None:
    for address, task in enumerate(routes.tasks):
        for stage in routes.inputs(task):
            assert address in routes.readers(stage, 0, 1)


def test_nobody_reads_an_unknown_stage(routes: Routes) -> None:
    assert routes.readers(str(Path("no such stage")), 0, 1) == []
