"""Datasets beside their CSV files: `python -m bench.shelf`, or `make bench ONLY=dataset`.

All commands are whole processes and take turns, so that a busy machine is busy for all of them.
"CPU" is the ratio of user and system time, which says more where others use the machine. The first
question to a dataset computes the values of `sentiment` and keeps them; "again" is a later one.
"DuckDB's own file" runs the same SQL with the same functions over tables that DuckDB keeps in a
database file, in one thread. The bars are for the time on the clock.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from bench import section
from bench.datasets import dataset, total_bytes, warm_page_cache
from bench.start import Timed
from bench.tables import Table
from caudal.application import find_application
from caudal.datasets.commits import commit, create_dataset, next_version, open_contents
from caudal.datasets.contents import Contents
from caudal.datasets.documents import (
    DatasetHead,
    DatasetTable,
    DatasetVersion,
    LoadedSource,
    StoredFile,
    TableChange,
)
from caudal.datasets.shelf import open_shelf
from caudal.duck.bind import choose_queries, parameter_values
from caudal.embedded.answering import answer_queries
from caudal.embedded.dataset_ask import bind_over
from caudal.embedded.dataset_computed import compute_columns
from caudal.embedded.dataset_files import local_files
from caudal.embedded.dataset_tables import app_database
from caudal.embedded.dataset_views import create_views
from caudal.run_options import RunOptions, Silent
from caudal.store import DirectoryStore

_CAUDAL = str(Path(sys.executable).with_name("caudal"))
_TITLE = "## Datasets\n\n" + " ".join((__doc__ or "").split("\n\n", 1)[1].split())
_STATS = '{"numRecords":1,"minValues":{"n":1},"maxValues":{"n":1},"nullCount":{"n":0}}'


def processes(data: Path, folder: Path, repeats: int) -> list[list[str]]:
    """Loads and questions as whole processes."""
    shelf = folder / "shelf"
    ask = [_CAUDAL, "run", "books", "--from", str(shelf)]
    csv = Timed("run from CSV", [_CAUDAL, "run", "books", "--data", str(data)], "")
    load = Timed("load", [_CAUDAL, "load", "books", "--data", str(data), "--to", str(shelf)], "")
    first, again = Timed("first", ask, ""), Timed("again", ask, "")
    for _ in range(repeats):
        shutil.rmtree(shelf, ignore_errors=True)
        for one in (csv, load, first, again):
            one.run()
    size = sum(path.stat().st_size for path in shelf.rglob("*") if path.is_file())
    return [
        _processes("`caudal run books --from shelf` again / from CSV", again, csv, 0.35),
        _processes("`caudal run books --from shelf`, the first time / from CSV", first, csv, None),
        _processes("`caudal load` / `caudal run` from CSV", load, csv, 1.5),
        _row("size of the dataset / CSV", [float(size)], [float(total_bytes(data))], 0.6),
    ]


def queries(folder: Path, repeats: int) -> list[list[str]]:
    """The five queries over the dataset and over DuckDB's own file, one after the other."""
    app, options = find_application("books"), RunOptions()
    shelf = open_shelf(str(folder / "shelf"))
    head, values = shelf.contents.head, parameter_values(app, {})
    chosen = choose_queries(app, None, {})
    first, again, theirs = list[float](), list[float](), list[float]()
    with (
        app_database(app, options) as connection,
        local_files(shelf, shelf.contents.tables) as files,
        ThreadPoolExecutor(options.threads) as pool,
    ):
        plain = bind_over(connection, head.tables, chosen, values)
        bound = bind_over(connection, head.tables, chosen, values, app.sentiment)
        create_views(connection, shelf, files)
        connection.execute(f"ATTACH '{folder / 'own.duckdb'}' AS own")
        for table in head.tables:
            connection.execute(f'CREATE TABLE own."{table.name}" AS FROM "{table.name}"')
        connection.execute("CHECKPOINT own")

        def ask() -> None:
            made = compute_columns(connection, pool, shelf, files, bound, options.threads)
            answer_queries(connection, pool, bound, options, Silent(), made.cursor)

        def ask_own() -> None:
            with connection.cursor() as own:
                own.execute("USE own")
                for one in plain:
                    own.sql(one.sql).to_arrow_table()

        for _ in range(repeats):
            shutil.rmtree(folder / "shelf" / "computed", ignore_errors=True)
            first.append(_seconds(ask))
            again.append(_seconds(ask))
            theirs.append(_seconds(ask_own))
    return [
        _row("query time again / DuckDB's own file", again, theirs, 1.1),
        _row("query time, the first time / DuckDB's own file", first, theirs, None),
    ]


def opening(folder: Path, versions: int) -> list[str]:
    """How long it takes to open a dataset of many versions, in seconds."""
    store = DirectoryStore(folder / "many", fsync=False)
    table = DatasetTable("t", (("n", "BIGINT"),), "digest")
    head = DatasetHead("5e3c8a54-94c1-4a4f-9f0e-0a4f4f1f9a11", "many", 0, (table,))
    contents = create_dataset(store, head)
    for _ in range(versions):
        contents = commit(store, contents, _one_more)
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        assert open_contents(store).number == versions
        taken.append(time.perf_counter() - began)
    seconds = statistics.median(taken)
    met = "yes" if seconds <= 0.3 else "no"
    return [f"opening {versions:,} versions, s", f"{seconds:.3f}", "", "0.3", met]


def _one_more(contents: Contents) -> DatasetVersion:
    number, moment = next_version(contents, time.time())
    load = f"{number:032x}"
    file = StoredFile(f"{load}/00000000.parquet", 1, 1_000, load, _STATS)
    source = LoadedSource("t", f"/data/{load}.csv", 1_000, load, 1)
    return DatasetVersion(number, moment, "load", load, (source,), {"t": (TableChange((file,)),)})


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _processes(name: str, ours: Timed, others: Timed, bar: float | None) -> list[str]:
    cpu = statistics.median(ours.cpu) / statistics.median(others.cpu)
    return _row(name, ours.wall, others.wall, bar, f"{cpu:.2f}")


def _row(
    name: str, ours: list[float], others: list[float], bar: float | None, cpu: str = ""
) -> list[str]:
    ratio = statistics.median(ours) / statistics.median(others)
    met = "" if bar is None else "yes" if ratio <= bar else "no"
    return [name, f"{ratio:.2f}", cpu, "" if bar is None else f"{bar:g}", met]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--versions", type=int, default=10_000)
    parser.add_argument("--write", type=Path, help="the page that holds the figures")
    given = parser.parse_args()
    began = section.load()
    data = dataset("books", given.scale)
    warm_page_cache(data)
    with tempfile.TemporaryDirectory(prefix="shelf-") as name:
        rows = processes(data, Path(name), given.repeats)
        rows += queries(Path(name), given.repeats)
        rows.append(opening(Path(name), given.versions))
    table = Table(
        f"books, scale {given.scale:g}", ("measure", "found", "CPU", "at most", "met"), rows
    )
    Console().print(table.rich())
    if given.write is not None:
        part = section.measured(_TITLE, "bench.shelf", began, [table])
        section.write(given.write, "dataset", part)


if __name__ == "__main__":
    main()
