"""A small job submitted while a large one runs, beside the same small job alone."""

from functools import partial
from pathlib import Path

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

SMALL = 0.00175  # a scale: 5 MB
LARGE, LARGER = 0.58, 1.16  # of the scale, which is 0.3: 500 MB, and what runs for longer


def measure(scale: float, repeats: int) -> list[Table]:
    small, rows = dataset("books", SMALL), list[list[str]]()
    with cluster() as bench:
        warm(bench)
        for part in (LARGE, LARGER):
            large = dataset("books", round(part * scale, 4))
            target = "≤ 3" if part == LARGE else ""
            rows.append(_row(bench, large, small, repeats, target))
    head = [
        "beside",
        "alone, median s",
        "beside it, median s",
        "ratio",
        "it ran on",
        "target",
        "met",
    ]
    return [Table(f"a job of {total_bytes(small) / 1e6:.0f} MB while a large one runs", head, rows)]


def _row(bench: Bench, large: Path, small: Path, repeats: int, target: str) -> list[str]:
    overlaps: list[bool] = []
    warm_page_cache(large)
    alone, beside = in_turn(
        partial(bench.submit, small),
        partial(_beside, bench, large, small, overlaps),
        repeats=repeats,
    )
    for run in beside:
        require_equal("the cluster", run.answers, alone[0].answers)
    ratio = middle(beside) / middle(alone)
    return [
        f"{total_bytes(large) / 1e6:,.0f} MB",
        f"{middle(alone):.2f}",
        f"{middle(beside):.2f}",
        f"{ratio:.2f}",
        f"{sum(overlaps)} of {len(overlaps)} times",
        target,
        met(ratio <= 3) if target else "",
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
