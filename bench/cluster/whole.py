"""All five books queries through the cluster, beside the embedded engine."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import duckdb

from bench.cluster.runs import (
    BROKER,
    Bench,
    Run,
    cluster,
    embedded,
    in_turn,
    middle,
    middle_cpu,
    peak,
    require_equal,
)
from bench.datasets import dataset, total_bytes, warm_page_cache
from bench.race import WARM_SCALE
from bench.tables import Table, met

BROKER_BYTES, OTHER_BYTES = 300e6, 700e6


def measure(scale: float, repeats: int) -> list[Table]:
    folder = dataset("books", scale)
    with cluster() as bench:
        warm(bench)
        warm_page_cache(folder)
        alone, through = in_turn(
            partial(embedded, folder), partial(bench.submit, folder), repeats=repeats
        )
        for one in through:
            require_equal("the cluster", one.answers, alone[0].answers)
    return [_speed(folder, scale, alone, through), _processes(through)]


def warm(bench: Bench) -> None:
    """Everybody has worked once, over tiny files."""
    tiny = dataset("books", WARM_SCALE)
    require_equal("the cluster", bench.submit(tiny).answers, embedded(tiny).answers)


def count_rows(folder: Path) -> int:
    """The records of all files, but for damaged ones."""
    with duckdb.connect() as connection:
        counts = [
            connection.execute(
                "SELECT count(*) FROM read_csv(?, all_varchar = true, header = true, delim = ',',"
                " quote = '\"', escape = '\"', ignore_errors = true)",
                [str(path)],
            ).fetchone()
            for path in folder.glob("*.csv")
        ]
    return sum(count[0] for count in counts if count)


def _speed(folder: Path, scale: float, alone: Sequence[Run], through: Sequence[Run]) -> Table:
    ratio = middle(through) / middle(alone)
    rows = count_rows(folder)
    speed = rows / middle(through)
    broker = peak(through, BROKER)
    name, most = max(_peaks(through).items(), key=lambda one: one[1])
    return Table(
        f"books, scale {scale:g}: {total_bytes(folder) / 1e6:,.0f} MB of CSV, {rows:,} rows",
        ["what", "measured", "target", "met"],
        [
            ["embedded, median s", f"{middle(alone):.2f}", "", ""],
            ["cluster, median s", f"{middle(through):.2f}", "", ""],
            ["cluster, best s", f"{min(run.seconds for run in through):.2f}", "", ""],
            ["embedded, CPU s", f"{middle_cpu(alone):.2f}", "", ""],
            ["cluster, CPU s of all its processes", f"{middle_cpu(through):.2f}", "", ""],
            ["cluster / embedded", f"{ratio:.2f}", "≤ 4", met(ratio <= 4)],
            ["rows a second", f"{speed:,.0f}", "≥ 120,000", met(speed >= 120_000)],
            ["broker, peak MB", f"{broker / 1e6:.0f}", "< 300", met(broker < BROKER_BYTES)],
            [
                f"largest other process ({name}), peak MB",
                f"{most / 1e6:.0f}",
                "< 700",
                met(most < OTHER_BYTES),
            ],
        ],
    )


def _peaks(runs: Sequence[Run]) -> dict[str, int]:
    """Of everybody but the broker."""
    return {name: peak(runs, name) for name in runs[0].peak_bytes if name != BROKER}


def _processes(through: Sequence[Run]) -> Table:
    rows = [
        [name, f"{peak(through, name) / 1e6:.0f}", f"{middle_cpu(through, name):.2f}"]
        for name in sorted(through[0].peak_bytes)
    ]
    return Table("every process of these runs", ["process", "peak MB", "median CPU s"], rows)
