"""Consolidation beside a plain DuckDB COPY: `python -m bench.series`.

Both read the same event files (by default 120 months of 50 daily series in 5 versions), keep the
newest version of every observation, and write a Parquet file per series and month into a directory.
DuckDB does nothing more; Caudal also syncs, commits, verifies, and keeps readers from seeing half
of it. The runs alternate, each in a process of its own, and their rows are compared. Before each of
them the disk rests for a minute, and what earlier ones wrote is moved aside instead of deleted: for
so long ext4 steps around every inode that was freed. Then: what a run costs that has nothing to do,
what one costs that finds one stale month, and how much memory more months take.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console

from bench import section
from bench.machine import peak_bytes
from bench.tables import Table, met
from caudal.series import Catalog, MonthResult, SeriesConfig, consolidate_all
from caudal.series.config import Series, SeriesSource, SourceFormat
from caudal.series.layout import Month
from caudal.series.manifest import NO_INPUTS, MonthInputs, VersionManifest
from caudal.series.rows import SCHEMA
from caudal.store import DirectoryStore

_HEAD = """\
## Series

Consolidation beside DuckDB's `COPY … PARTITION_BY`, which reads the same events and writes the same
files, a Parquet file per series and month, without any safety. They take turns, each after a minute
of rest (ext4 steps around inodes that were freed within the last one)."""
TARGET_RATIO, TARGET_NO_OP_SECONDS = 2.0, 1.0
_ROOT = Path(__file__).parent.parent
_FIRST_YEAR = 2015
_REST_SECONDS = 61
_CONFIG = SeriesConfig(
    dataset_id="bench",
    provider="BENCH",
    timezone="UTC",
    source=SeriesSource(SourceFormat.CSV),
    series=(
        Series(
            internal_series_code="S00",
            unit="u",
            frequency="D",
            date_column="day",
            value_column="v",
        ),
    ),
)
_COPY = """
COPY (
    SELECT *, year(obs_date) AS year, month(obs_date) AS month
    FROM read_parquet('{events}', hive_partitioning = false)
    QUALIFY row_number() OVER (
        PARTITION BY internal_series_code, obs_time ORDER BY version DESC) = 1
    ORDER BY internal_series_code, obs_time
) TO '{out}' (
    FORMAT parquet, PARTITION_BY (internal_series_code, year, month), WRITE_PARTITION_COLUMNS true)
"""


@dataclass(frozen=True)
class Run:
    """What one run took."""

    seconds: float
    peak_bytes: int


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in _CHILDREN:
        store = Path(sys.argv[2])
        print(json.dumps(asdict(_CHILDREN[sys.argv[1]](store))))
        return 0
    parser = argparse.ArgumentParser(prog="python -m bench.series", description=__doc__)
    parser.add_argument("--months", type=int, default=120)
    parser.add_argument("--series", type=int, default=50)
    parser.add_argument("--versions", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", type=Path, help="also write the part on series of this page")
    chosen, began = parser.parse_args(), section.load()
    with tempfile.TemporaryDirectory(prefix="caudal-bench-") as folder:
        sizes = chosen.months, chosen.series, chosen.versions, chosen.repeats
        table = _bench(Path(folder), *sizes)
    Console().print(table.rich())
    if chosen.write is not None:
        text = section.measured(_HEAD, "bench.series", began, [table])
        section.write(chosen.write, "series", text)
    return int(any(row[-1] == met(False) for row in table.rows))


def _bench(folder: Path, months: int, series: int, versions: int, repeats: int) -> Table:
    store = folder / "store"
    write_events(store, months, series, versions)
    ours, theirs = [], []
    for turn in range(repeats):
        _move_aside(_duckdb_folder(store), folder / f"duckdb-{turn}")
        theirs.append(_rested("duckdb", store))
        _move_aside(store / "datasets" / "bench" / "projections", folder / f"caudal-{turn}")
        ours.append(_rested("caudal", store))
    _require_same_rows(store)
    no_op = _child("caudal", store)
    write_events(store, months, series, versions + 1, first=versions + 1, only_last_month=True)
    one_stale = _child("caudal", store)
    ratio = _median(ours) / _median(theirs)
    peaks = _peaks(folder, months, series, versions)
    is_flat = max(peaks.values()) < 1.2 * min(peaks.values())
    return Table(
        f"{months} months, {series} series, {versions} versions",
        ["what", "measured", "target", "met"],
        [
            ["caudal, s", _times(ours), "", ""],
            ["DuckDB, s", _times(theirs), "", ""],
            [
                "caudal / DuckDB, medians",
                f"{ratio:.2f}",
                f"≤ {TARGET_RATIO:g}",
                met(ratio <= TARGET_RATIO),
            ],
            [
                "a run with nothing to do, s",
                f"{no_op.seconds:.2f}",
                f"< {TARGET_NO_OP_SECONDS:g}",
                met(no_op.seconds < TARGET_NO_OP_SECONDS),
            ],
            ["a run with one stale month, s", f"{one_stale.seconds:.2f}", "", ""],
            [
                f"peak MB of {', '.join(map(str, peaks))} months",
                ", ".join(f"{peak / 1e6:.0f}" for peak in peaks.values()),
                "flat",
                met(is_flat),
            ],
        ],
    )


def _median(runs: list[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def _times(runs: list[Run]) -> str:
    return ", ".join(f"{run.seconds:.2f}" for run in runs)


def _move_aside(written: Path, place: Path) -> None:
    if written.exists():
        written.rename(place)


def _peaks(folder: Path, months: int, series: int, versions: int) -> dict[int, int]:
    """The peak memory of consolidating a quarter, half and all of the months."""
    peaks = {}
    for count in (months // 4, months // 2, months):
        store = folder / f"store-{count}"
        write_events(store, count, series, versions)
        peaks[count] = _child("caudal", store).peak_bytes
    return peaks


def _rested(name: str, store: Path) -> Run:
    os.sync()
    time.sleep(_REST_SECONDS)
    return _child(name, store)


def _child(name: str, store: Path) -> Run:
    os.sync()  # nobody waits for what another left unwritten
    command = [sys.executable, "-m", "bench.series", name, str(store)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Run(**json.loads(done.stdout))


def _caudal(store: Path) -> Run:
    began = time.perf_counter()
    outcomes = consolidate_all(Catalog(DirectoryStore(store)), _CONFIG)
    seconds = time.perf_counter() - began
    assert {one.ending for one in outcomes} <= {MonthResult.CONSOLIDATED, MonthResult.FRESH}
    return Run(seconds, peak_bytes())


def _duckdb(store: Path) -> Run:
    began = time.perf_counter()
    events = store / "datasets" / "bench" / "events" / "**" / "part-*.parquet"
    duckdb.execute(_COPY.format(events=events, out=_duckdb_folder(store)))
    return Run(time.perf_counter() - began, peak_bytes())


_CHILDREN: dict[str, Callable[[Path], Run]] = {"caudal": _caudal, "duckdb": _duckdb}


def _duckdb_folder(store: Path) -> Path:
    return store.with_name(f"{store.name}-duckdb")


def _require_same_rows(store: Path) -> None:
    windows = store / "datasets" / "bench" / "projections" / "windows"
    columns = ", ".join(SCHEMA.names)
    sides = [
        f"SELECT {columns} FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = false)"
        for folder in (windows, _duckdb_folder(store))
    ]
    for one, other in (sides, sides[::-1]):
        found = duckdb.execute(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall()
        assert found == [(0,)], "the two did not write the same rows"


def write_events(
    store: Path,
    months: int,
    series: int,
    versions: int,
    *,
    first: int = 1,
    only_last_month: bool = False,
) -> None:
    """An event log in which every version revises every value."""
    log = Catalog(DirectoryStore(store, fsync=False)).log("bench")
    every = [Month("bench", _FIRST_YEAR + n // 12, 1 + n % 12) for n in range(months)]
    for version in range(first, versions + 1):
        touched = every[-1:] if only_last_month else every
        head = log.head()
        inputs: dict[str, MonthInputs] = dict(head.months) if head else {}
        parts = [
            log.write_part(month, version, "bench", _month_rows(month, series, version))
            for month in touched
        ]
        for part in parts:
            before = inputs.get(part.month, NO_INPUTS)
            inputs[part.month] = before.with_part(version, part.digest)
        log.commit(
            VersionManifest(
                dataset_id="bench",
                version=version,
                attempt="bench",
                timestamp=datetime(2026, 1, 1, tzinfo=UTC).isoformat(),
                vintage_date="2026-01-01",
                source="bench",
                added=0,
                revised=0,
                parts=tuple(parts),
                months=inputs,
            )
        )


def _month_rows(month: Month, series: int, version: int) -> pa.Table:
    first = date(month.year, month.month, 1)
    after = (first + timedelta(days=32)).replace(day=1)
    days = [first + timedelta(days=n) for n in range((after - first).days)]
    count = len(days) * series
    dice = np.random.default_rng((month.year, month.month, version))
    texts = {"dataset_id": "bench", "provider": "BENCH", "frequency": "D", "unit": "u"}
    columns: dict[str, object] = {
        **{name: [text] * count for name, text in texts.items()},
        "source_kind": ["csv"] * count,
        "obs_time": [datetime(d.year, d.month, d.day, tzinfo=UTC) for d in days] * series,
        "obs_date": days * series,
        "value": dice.normal(size=count),
        "internal_series_code": [f"S{n:02}" for n in range(series) for _ in days],
        "version": [version] * count,
        "vintage_date": [date(2026, 1, 1)] * count,
        "quality_flag": ["ok" if version == 1 else "revised"] * count,
    }
    return pa.table(columns, schema=SCHEMA)


if __name__ == "__main__":
    sys.exit(main())
