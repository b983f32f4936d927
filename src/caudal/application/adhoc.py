"""Ad hoc SELECTs over files, without an application: `SELECT ... FROM 'x.csv'`.

1. Caudal reads a CSV file (also .gz or .zst, or a glob) in FROM or JOIN by the same rules as an
   application's files. The file becomes a table with the file's column names and the types that
   `caudal new` would choose. Damaged rows are rejected, counted and reported.
2. DuckDB reads every other file and runs every table function (`read_csv(...)`,
   `read_parquet(...)`).
3. Relative names are relative to the data folder.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from caudal.application import draft as drafting
from caudal.application.folder import is_folder, shipped_applications
from caudal.application.sniff import SAMPLED_ROWS, sample, sniff
from caudal.duck.trees import parse_tree, tree_text
from caudal.errors import DataError, UsageError
from caudal.files.find import find_files, shown_path
from caudal.files.pieces import column_names, require_commas
from caudal.model import ADHOC, Application, Table
from caudal.run_options import Engine
from caudal.sql.adhoc import clean_statement, with_adhoc_query

_COMPRESSIONS = (".gz", ".zst")
_CSV = (".csv", *(f".csv{suffix}" for suffix in _COMPRESSIONS))
_FILES = (*_CSV, ".parquet", ".json", ".jsonl", ".ndjson")


def files_application(
    sql: str, folder: Path | None, engine: Engine = Engine.EMBEDDED
) -> Application:
    """Return an application whose tables are the CSV files that a SELECT names.

    If `folder` is given, all file names are relative to it, and functions that would bypass it
    raise UsageError.
    """
    statement = clean_statement(sql)
    if not statement:
        raise UsageError("the query is empty: give a SELECT")
    if statement in shipped_applications() or is_folder(statement):
        raise UsageError(
            f"give a SELECT after the application: caudal sql {statement} 'SELECT ...'"
        )
    tree = _tree(statement)
    named = [node for node in _nodes(tree, "BASE_TABLE") if _full_name(node).endswith(_FILES)]
    if folder is not None:
        _refuse_readers(tree)
    taken = {str(node["table_name"]).lower() for node in _nodes(tree, "BASE_TABLE")}
    taken |= {str(entry["key"]).lower() for entry in _cte_entries(tree)}
    tables: dict[str, Table] = {}
    for node in named:
        path = _full_name(node)
        if path.endswith(_CSV):
            if path not in tables:
                tables[path] = _table(path, folder or Path(), taken)
            _point(node, tables[path].name, path)
        elif engine is not Engine.EMBEDDED:
            raise UsageError(f"only CSV files can be read with --engine {engine}, not {path}")
        elif folder is not None and not Path(path).is_absolute():
            _point(node, str(folder / path), path)
    if named:
        statement = tree_text(tree)
    app = Application(ADHOC, "", folder or Path(), tuple(tables.values()), ())
    return with_adhoc_query(app, statement)


def _table(pattern: str, folder: Path, taken: set[str]) -> Table:
    """Return the table of a CSV file: original column names, types inferred from a sample."""
    from caudal.application import draft as drafting
    from caudal.application.sniff import sniff

    try:
        paths = find_files(folder, [pattern], pattern)
    except DataError:
        if os.path.lexists(folder / pattern) or not os.access(folder, os.X_OK):
            raise
        raise DataError(
            f"no file {pattern!r} in {folder.absolute()}: name an existing file, or give "
            "its folder with --data DIR"
        ) from None
    name = drafting.unused(drafting.table_name(_stem(pattern)), taken)
    columns = tuple(drafting.draft_columns(sniff(_sample(paths)), keep_names=True))
    draft = drafting.DraftTable(name, pattern, columns)
    return Table(
        name=name,
        files=(pattern,),
        columns=tuple(column.raw for column in columns),
        sql=drafting.table_sql(draft),
        origin=pattern,
    )


def _sample(paths: list[Path]) -> pa.Table:
    """Return the first rows of the files, with the columns of the first file."""
    from caudal.application.sniff import SAMPLED_ROWS, sample

    samples = [sample(paths[0])]
    for path in paths[1:]:
        _require_columns_of(paths[0], samples[0].column_names, path)
    for path in paths[1:]:
        if sum(rows.num_rows for rows in samples) >= SAMPLED_ROWS:
            break
        samples.append(sample(path, samples[0].column_names))
    return pa.concat_tables(samples)


def _require_columns_of(first: Path, names: Sequence[str], path: Path) -> None:
    """Raise DataError if `path` lacks a column of the first file of the same pattern."""
    present = column_names(path)
    missing = [name for name in names if name not in present]
    if missing:
        require_commas(present, shown_path(path))
        raise DataError(
            f"{shown_path(path)}: no column {missing[0]!r}, which {shown_path(first)} has; "
            "files of one pattern need the same columns"
        )


def columns_left_out(app: Application) -> Iterator[str]:
    """Yield a note per table about columns that no SELECT can use.

    These are columns without a name, and columns that the first file of a pattern does not have.
    """
    for table in app.tables:
        paths = find_files(app.folder, table.files, table.name)
        names = dict.fromkeys(name for path in paths for name in column_names(path))
        told = [f"{name!r} (not in {shown_path(paths[0])})" for name in names
                if name and name not in table.columns]  # fmt: skip
        if "" in names:
            told.append("columns without a name in the first line")
        if told:
            yield f"{table.origin}: columns left out: {', '.join(told)}"


def _tree(statement: str) -> Any:
    tree = parse_tree(statement)
    if tree["error"]:
        reason = " ".join(str(tree["error_message"]).split())
        if reason.startswith("Only SELECT"):
            reason = "must hold one SELECT and nothing else"
        raise UsageError(f"the query: {reason}")
    if len(tree["statements"]) != 1:
        raise UsageError("the query: must hold one SELECT and nothing else")
    return tree


def _nodes(tree: Any, kind: str) -> Iterator[dict[str, Any]]:
    """Yield all nodes of one type in the tree."""
    if isinstance(tree, list):
        for item in tree:
            yield from _nodes(item, kind)
    elif isinstance(tree, dict):
        if tree.get("type") == kind:
            yield tree
        for value in tree.values():
            yield from _nodes(value, kind)


def _cte_entries(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, list):
        for item in tree:
            yield from _cte_entries(item)
    elif isinstance(tree, dict):
        yield from (tree.get("cte_map") or {}).get("map", [])
        for value in tree.values():
            yield from _cte_entries(value)


def _full_name(node: dict[str, Any]) -> str:
    """Return the name with its dots: DuckDB parses an unquoted `x.csv` as schema and table."""
    parts = (node["catalog_name"], node["schema_name"], node["table_name"])
    return ".".join(str(part) for part in parts if part)


def _point(node: dict[str, Any], name: str, path: str) -> None:
    """Point a table reference to `name`, with the alias that DuckDB gives to a file."""
    node.update(catalog_name="", schema_name="", table_name=name)
    node["alias"] = node["alias"] or _stem(path)
    node["qualified_name"] = {"path": [name]}


def _stem(path: str) -> str:
    name = Path(path).name
    return next((name.removesuffix(end) for end in _FILES if name.endswith(end)), name)


def _refuse_readers(tree: Any) -> None:
    for node in _nodes(tree, "TABLE_FUNCTION"):
        name = str(node["function"]["function_name"]).lower()
        if name.startswith(("read_", "parquet_", "glob", "sniff_")):
            raise UsageError(
                f"--data works for files named in FROM only, not for {name}(): "
                "write the whole path there and leave --data out"
            )
