"""The split engine beside the embedded one, on books: `python -m bench.split [SCALE]`."""

import statistics
import sys
import time
from collections.abc import Callable

from rich.console import Console

from bench.datasets import dataset, total_bytes, warm_page_cache
from bench.tables import Table
from caudal.application import find_application
from caudal.duck.binder import DuckDBBinder
from caudal.duck.functions import RETURN_TYPES, register_functions
from caudal.duck.job_plan import make_plan
from caudal.embedded import engine
from caudal.files.sources import Sources
from caudal.kernels.sentiment import load_model
from caudal.local import split
from caudal.results.answers import Answers
from caudal.run_options import RunOptions
from caudal.sql.parameters import bind_parameters
from caudal.sql.planner import plan

APP, SCALE, REPEATS = "books", 0.1, 5
OPTIONS = RunOptions(threads=2)


def measure(scale: float = SCALE) -> Table:
    """Medians of runs that take turns, the share of bytes that leave scan, planning times."""
    folder = dataset(APP, scale)
    warm_page_cache(folder)
    app, sources = find_application(APP), Sources(folder)
    engines: dict[str, Callable[[], Answers]] = {
        "embedded": lambda: engine.run(app, sources, options=OPTIONS),
        "split": lambda: split.run(app, sources, options=OPTIONS),
    }
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    answers: dict[str, Answers] = {}
    for _ in range(REPEATS):
        for name, run in engines.items():
            began = time.perf_counter()
            answers[name] = run()
            seconds[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    for query, result in answers["embedded"].items():
        assert result.table.equals(answers["split"][query].table), query
    leaving = sum(table.mapped_bytes for table in answers["split"].tables)
    return Table(
        f"books, scale {scale:g}: the split engine with two workers",
        ["what", "measured", "target"],
        [
            ["embedded, median s", f"{medians['embedded']:.2f}", ""],
            ["split, median s", f"{medians['split']:.2f}", ""],
            ["split / embedded", f"{medians['split'] / medians['embedded']:.2f}", "≤ 3"],
            ["bytes that leave scan", f"{leaving / total_bytes(folder):.2%}", "< 10%"],
            ["slowest planning of one query, ms", f"{_planning() * 1000:.0f}", "< 50"],
        ],
    )


def _planning() -> float:
    """The slowest of all shipped queries; of each the best of five."""
    model = load_model("lexicon")
    slowest = 0.0
    for app in (find_application("movies"), find_application("books")):
        schemas = make_plan(app, None, {}, model).plan.tables
        binder = DuckDBBinder(schemas, lambda connection: register_functions(connection, model))
        for query in app.queries:
            sql = bind_parameters(query.sql, app.parameters, query.origin)
            times = []
            for _ in range(5):
                began = time.perf_counter()
                plan({query.name: sql}, schemas, scalar_functions=RETURN_TYPES, binder=binder)
                times.append(time.perf_counter() - began)
            slowest = max(slowest, min(times))
        binder.close()
    return slowest


if __name__ == "__main__":
    Console().print(measure(*(float(argument) for argument in sys.argv[1:])).rich())
