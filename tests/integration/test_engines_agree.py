"""Both engines give the same rows, to the last bit, however the work is cut and ordered."""

from pathlib import Path

import pytest

from caudal.application import find_application
from caudal.application.cases import run_cases
from caudal.files.sources import Sources
from caudal.generate import generate
from caudal.local.engines import run_with
from caudal.model import RejectedRow
from caudal.results.answers import Answers
from caudal.run_options import IN_PROCESS, Engine, RunOptions

APPS = ("movies", "books")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    for app in APPS:
        generate(app, scale=0.01, seed=5, out=folder / app)
    return folder


def assert_identical(one: Answers, other: Answers) -> None:
    assert list(one) == list(other)
    for name in one:
        assert one[name].table.equals(other[name].table), name
        assert one[name].table.schema == other[name].table.schema, name
    assert one.rejects.counts() == other.rejects.counts()


CUTS = [
    RunOptions(threads=1, partitions=1, batch_bytes=64 << 20),
    RunOptions(threads=2, partitions=5, batch_bytes=1 << 20),
    RunOptions(threads=4, partitions=3, batch_bytes=333_333, hints=False),
    RunOptions(threads=3, partitions=16, batch_bytes=77_777),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("app", APPS)
def test_cuts_partitions_threads_and_engines_change_no_bit(app: str, generated: Path) -> None:
    application, sources = find_application(app), Sources(generated / app)
    expected = run_with(Engine.EMBEDDED, application, sources, options=CUTS[0])
    for options in CUTS:
        for engine in IN_PROCESS:
            found = run_with(engine, application, sources, options=options)
            assert_identical(found, expected)


@pytest.mark.long
@pytest.mark.parametrize("app", APPS)
def test_the_split_engine_passes_every_shipped_case(app: str) -> None:
    outcomes = run_cases(find_application(app), engine=Engine.SPLIT)
    assert {outcome.name: outcome.problems for outcome in outcomes if outcome.problems} == {}


def test_rejected_rows_are_reported_alike(generated: Path) -> None:
    reports: dict[Engine, list[RejectedRow]] = {engine: [] for engine in IN_PROCESS}
    for engine, rows in reports.items():
        options = RunOptions(reject_sink=rows.append, batch_bytes=200_000)
        run_with(engine, find_application("books"), Sources(generated / "books"), options=options)
    assert reports[Engine.SPLIT] == reports[Engine.EMBEDDED]
    assert len(reports[Engine.SPLIT]) > 100
