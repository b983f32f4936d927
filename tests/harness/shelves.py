"""Datasets of a small application, loaded as users load them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from caudal.application import find_application
from caudal.datasets.reports import LoadReport
from caudal.datasets.shelf import Shelf, open_shelf
from caudal.embedded.dataset_ask import ask
from caudal.embedded.dataset_load import DatasetLoader, open_loader
from caudal.embedded.dataset_sources import file_sources
from caudal.files.sources import Sources
from caudal.model import Application, Query, Table
from caudal.results.answers import Answers
from caudal.run_options import RunOptions
from caudal.sql.adhoc import with_adhoc_query
from caudal.store import DirectoryStore
from caudal.store.port import Store

SALES = """
SELECT id, amount, day,
    CASE WHEN id IS NULL THEN 'id is not a number' END AS reject
FROM (
    SELECT
        TRY_CAST(raw.id AS INTEGER) AS id,
        TRY_CAST(raw.amount AS DECIMAL(9, 2)) AS amount,
        TRY_CAST(raw.day AS DATE) AS day
    FROM raw
)
"""
SHOPS = "SELECT raw.name AS name, TRY_CAST(raw.opened AS TIMESTAMP) AS opened FROM raw"
TOTAL = "SELECT count(*) AS sales, sum(amount) AS total FROM sales"


def sales_app(sales_sql: str = SALES) -> Application:
    sales = Table("sales", ("sales.csv",), ("id", "amount", "day"), sales_sql, "tables/sales.sql")
    shops = Table("shops", ("shops.csv",), ("name", "opened"), SHOPS, "tables/shops.sql")
    total = Query("total", "All sales", TOTAL, "queries/total.sql")
    return Application("sales", "", Path(), (sales, shops), (total,))


def write_sales_app(folder: Path) -> Path:
    """Write the application as a folder, for commands and Python calls."""
    app = sales_app()
    for name in ("tables", "queries"):
        (folder / name).mkdir(parents=True)
    tables = "".join(
        f'[[tables]]\nname = "{table.name}"\nfiles = ["{table.files[0]}"]\n'
        f"columns = [{', '.join(repr(name) for name in table.columns)}]\n"
        for table in app.tables
    )
    (folder / "app.toml").write_text(tables)
    for table in app.tables:
        (folder / "tables" / f"{table.name}.sql").write_text(table.sql)
    (folder / "queries" / "total.sql").write_text(app.queries[0].sql)
    return folder


def write_sales(folder: Path, name: str, numbers: Sequence[int]) -> Path:
    """Write a file of sales: one row for each number, and one bad row."""
    lines = ["id,amount,day", *(f"{n},{n}.50,2024-01-{n % 28 + 1:02}" for n in numbers), "x,1,"]
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_shops(folder: Path) -> Path:
    path = folder / "shops.csv"
    path.write_text('name,opened\nNorth,2020-02-03 04:05:06\n"South, ""old""",\n', encoding="utf-8")
    return path


@contextmanager
def sales_loader(
    store: Store, place: str = "shelf", options: RunOptions | None = None
) -> Iterator[DatasetLoader]:
    with open_loader(sales_app(), place, store, options or RunOptions(threads=1)) as loader:
        yield loader


def load_files(
    loader: DatasetLoader, folder: Path, *, again: bool = False, **files: Sequence[str]
) -> LoadReport:
    """Load the given files of tables of the application."""
    tables = [table for table in loader.app.tables if table.name in files]
    return loader.load(file_sources(Sources(folder, files), tables), again=again)


def ask_sales(shelf: Shelf, sql: str = TOTAL) -> list[dict[str, object]]:
    answers = ask(with_adhoc_query(sales_app(), sql), shelf, options=RunOptions(threads=1))
    return answers["sql"].rows()


def load_app(name: str, data: Path, place: Path, options: RunOptions | None = None) -> Shelf:
    """Load all files of a shipped application; return the open dataset."""
    app = find_application(name)
    store = DirectoryStore(place, fsync=False)
    with open_loader(app, str(place), store, options) as loader:
        loader.load(file_sources(Sources(data), app.tables))
    return open_shelf(str(place))


def ask_app(name: str, shelf: Shelf, queries: Sequence[str] | None = None) -> Answers:
    return ask(find_application(name), shelf, queries)
