"""A small job submitted while a large one runs, beside the same small job alone."""

from functools import partial
from pathlib import Path
from statistics import median

from bench.cluster.runs import (
    Bench,
    Run,
    begun,
    caudal,
    cluster,
    ended,
    in_turn,
    measured,
    middle,
    require_equal,
)
from bench.cluster.whole import warm
from bench.datasets import dataset, total_bytes, warm_page_cache
from bench.tables import Table, met

LARGE, SMALL = 1.16, 0.00175  # of the scale, which is 0.3 for 1 GB; a scale: 5 MB


def measure(scale: float, repeats: int) -> list[Table]:
    large, small = dataset("books", round(LARGE * scale, 4)), dataset("books", SMALL)
    overlaps: list[bool] = []
    with cluster() as bench:
        warm(bench)
        warm_page_cache(large)
        alone, beside = in_turn(
            partial(bench.submit, small),
            partial(_beside, bench, large, small, overlaps),
            repeats=repeats,
        )
    for run in beside:
        require_equal("the cluster", run.answers, alone[0].answers)
    ratio = median(run.seconds for run in beside) / middle(alone)
    return [
        Table(
            f"a job of {total_bytes(small) / 1e6:.0f} MB while one of "
            f"{total_bytes(large) / 1e6:,.0f} MB runs",
            ["what", "measured", "target", "met"],
            [
                ["alone, median s", f"{middle(alone):.2f}", "", ""],
                ["beside the large one, median s", f"{middle(beside):.2f}", "", ""],
                ["beside / alone", f"{ratio:.2f}", "≤ 3", met(ratio <= 3) if all(overlaps) else ""],
                ["the large one still ran", f"{sum(overlaps)} of {len(overlaps)} times", "", ""],
            ],
        )
    ]


def _beside(bench: Bench, large: Path, small: Path, overlaps: list[bool]) -> Run:
    """The small job begins once the large one has its id: it then sends its first batches."""
    bench.settle()
    submit = ["submit", "books", "--data"]
    process = begun(caudal([*submit, str(large), *bench.gateway, "--format", "json"]))
    try:
        assert process.stderr is not None
        process.stderr.readline()
        run = measured(caudal([*submit, str(small), *bench.gateway]), bench.pids)
        overlaps.append(process.poll() is None)
    finally:
        ended(process)
    return run
