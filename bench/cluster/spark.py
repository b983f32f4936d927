"""The Spark engine beside hand-written PySpark and the embedded engine, and as files grow."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from bench.answers import require_same
from bench.cluster.rivals import Told, run_rival
from bench.cluster.runs import CLIENT, PROJECT, Run, in_turn, peak
from bench.datasets import dataset, total_bytes, warm_page_cache
from bench.tables import Table, met

PYTHON = PROJECT / ".venv-spark" / "bin" / "python"
NAMES = {
    "caudal_spark": "`--engine spark`",
    "caudal_spark_executors": "`--engine spark`, two executors",
    "pyspark": "PySpark, hand-written",
    "caudal_embedded": "embedded engine",
}
_WARM_SCALE = 0.01  # several batches, so that both Python processes of Spark are warm
_RUNS = 5  # over the same files, in one session: the last one is warm
_SHOWN = (0, 1, _RUNS - 1)
GROWTH = (0.1, 0.3, 1.0)
_MOST_GROWTH = 1.2  # of the first row, per byte
_MOST = {"pyspark": 0.6, "caudal_embedded": 2.5}  # of its seconds


def measure(scale: float, repeats: int, grown: Sequence[float]) -> list[Table]:
    return [_race(scale, repeats), _growth(grown)]


def _race(scale: float, repeats: int) -> Table:
    folder = dataset("books", scale)
    warm_page_cache(folder)
    told: dict[str, list[Told]] = {name: [] for name in NAMES}
    runs = in_turn(*(partial(_run, name, folder, told[name]) for name in NAMES), repeats=repeats)
    expected = told["caudal_embedded"][0].answers
    for name, found in told.items():
        for one in found:
            require_same(name, one.answers, "the embedded engine", expected)
    rows = [_row(name, runs[place], told) for place, name in enumerate(NAMES)]
    head = ["system", *(f"run {one + 1} s" for one in _SHOWN), "start-up s", "peak MB"]
    head += ["/ PySpark", "/ embedded", "targets", "met"]
    return Table(f"books, scale {scale:g}: {total_bytes(folder) / 1e6:,.0f} MB", head, rows)


def _run(name: str, folder: Path, told: list[Told]) -> Run:
    return run_rival(name, folder, told, PYTHON, _WARM_SCALE, _RUNS)


def _medians(told: list[Told]) -> list[float]:
    """Return the seconds of the shown runs over the files."""
    return [median(one.run_seconds[number] for one in told) for number in _SHOWN]


def _row(name: str, runs: list[Run], told: dict[str, list[Told]]) -> list[str]:
    seconds = _medians(told[name])
    started = median(one.start_seconds for one in told[name])
    shown = [NAMES[name], *(f"{one:.2f}" for one in seconds)]
    shown += [f"{started:.2f}", f"{peak(runs, CLIENT) / 1e6:.0f}"]
    if not name.startswith("caudal_spark"):
        return [*shown, "", "", "", ""]
    ratios = {
        rival: [one / other for one, other in zip(seconds, _medians(told[rival]), strict=True)]
        for rival in _MOST
    }
    told_ratios = [", ".join(f"{one:.2f}" for one in found) for found in ratios.values()]
    targets = ", ".join(f"≤ {most:g}" for most in _MOST.values())
    each = zip(*ratios.values(), strict=True)  # of each shown run
    is_met = [
        all(one <= most for one, most in zip(found, _MOST.values(), strict=True)) for found in each
    ]
    return [*shown, *told_ratios, targets, ", ".join(map(met, is_met))]


def _growth(scales: Sequence[float]) -> Table:
    """Time per byte, the memory of the driver, and that of all processes must not grow with the
    files."""
    rows: list[list[str]] = []
    first = 0.0, 0, 0
    for scale in scales:
        folder = dataset("books", scale)
        warm_page_cache(folder)
        told: list[Told] = []
        run = run_rival("caudal_spark", folder, told, PYTHON, _WARM_SCALE)
        seconds, size = told[0].run_seconds[0], total_bytes(folder) / 1e6
        measured = 1000 * seconds / size, told[0].own_peak_bytes, peak([run], CLIENT)
        first = first if rows else measured
        pace, driver, every = measured
        grown = [one / other for one, other in zip(measured, first, strict=True)]
        rows.append(
            [f"{scale:g}", f"{size:,.0f}", f"{seconds:.2f}", f"{pace:.2f}", f"{grown[0]:.2f}",
             f"{driver / 1e6:.0f}", f"{grown[1]:.2f}", f"{every / 1e6:.0f}", f"{grown[2]:.2f}",
             f"≤ {_MOST_GROWTH:g}", met(max(grown) <= _MOST_GROWTH)]
        )  # fmt: skip
    head = ["scale", "MB", "s", "s per GB", "/ first", "driver MB", "/ first", "all MB", "/ first"]
    return Table("Growth", [*head, "target", "met"], rows)
