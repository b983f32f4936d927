"""`caudal explain --from`: the files that a query reads from a dataset, and its operators."""

from collections.abc import Mapping, Sequence

from caudal.datasets.contents import HeldFile
from caudal.datasets.shelf import Shelf, require_same
from caudal.duck.bind import choose_queries, parameter_values
from caudal.embedded.dataset_ask import bind_over
from caudal.embedded.dataset_files import local_files
from caudal.embedded.dataset_tables import app_database, cleaning_digests
from caudal.embedded.dataset_views import create_views
from caudal.embedded.explain import operator_steps
from caudal.model import Application, ParameterValue
from caudal.run_options import RunOptions
from caudal.sizes import told_bytes


def explain_dataset(
    app: Application, shelf: Shelf, name: str, parameters: Mapping[str, ParameterValue]
) -> str:
    """Return what one query reads from a version of a dataset, and the operators in order."""
    (chosen,) = choose_queries(app, [name], parameters)
    head = shelf.contents.head
    require_same(shelf.place, head, app.name, cleaning_digests(app, RunOptions()))
    with app_database(app, RunOptions()) as connection:
        values = parameter_values(app, parameters)
        (bound,) = bind_over(connection, head.tables, [chosen], values)
        with local_files(shelf, bound.reads.keys()) as files:
            create_views(connection, shelf, files)
            steps = operator_steps(connection, bound.sql)
    lines = [f"{app.name} {name}: {chosen.title}"]
    lines += [f"dataset: {shelf.place}, version {shelf.contents.number}", ""]
    for table, columns in bound.reads.items():
        lines += _read_lines(table, shelf.contents.tables[table], sorted(columns))
    lines.append("then")
    return "\n".join([*lines, *(f"  {at:>2}. {step}" for at, step in enumerate(steps, start=1))])


def _read_lines(table: str, files: Sequence[HeldFile], columns: Sequence[str]) -> list[str]:
    rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    return [
        f"read {table} from {len(files):,} Parquet file{'' if len(files) == 1 else 's'}",
        f"  rows                 {rows:,} ({told_bytes(size)})",
        f"  columns              {', '.join(columns) or '(only a count of rows)'}",
        "",
    ]
