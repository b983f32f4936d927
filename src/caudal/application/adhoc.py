"""Ad hoc SELECTs over files, without an application: `SELECT ... FROM 'x.csv'`.

1. Caudal reads a text file in FROM or JOIN (CSV in any dialect, compressed or not, or a glob), a
   workbook, standard input (`-`) and objects in S3 by the same rules as an application's files. The
   file becomes a table with the file's column names and the types that `caudal new` would choose.
   Damaged rows are rejected, counted and reported.
2. DuckDB reads local Parquet and JSON files and runs every table function (`read_csv(...)`). It
   reads its inputs more than once, so standard input and pipes are copied for it first.
3. Relative names are relative to the data folder.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caudal.application.folder import is_folder, shipped_applications
from caudal.duck.trees import parse_tree, plain, tree_text
from caudal.errors import DataError, UsageError
from caudal.files.places import S3, LocalPlace
from caudal.files.reading import USUAL
from caudal.files.sources import Sources
from caudal.files.spool import STANDARD_INPUT, is_once_readable, spooled
from caudal.model import ADHOC, Application, Reading, Table
from caudal.run_options import Engine
from caudal.sql.adhoc import clean_statement, with_adhoc_query
from caudal.sql.quoting import quote

if TYPE_CHECKING:
    from caudal.files.inputs import InputFile

_DUCKDB = (".parquet", ".json", ".jsonl", ".ndjson")
_OURS = (".csv", ".tsv", ".tab", ".psv", ".txt", ".dat", ".xlsx", ".xlsm", ".xls")


def files_application(
    sql: str,
    folder: Path | None,
    engine: Engine = Engine.EMBEDDED,
    reading: Reading = USUAL,
    frames: Collection[str] = (),
) -> Application:
    """Return an application whose tables are the files that a SELECT names.

    If `folder` is given, all file names are relative to it, and functions that would bypass it
    raise UsageError. `reading` says how the files are written. `frames` are names of tables that
    are no files.
    """
    statement = clean_statement(sql)
    if not statement:
        raise UsageError("the query is empty: give a SELECT")
    if statement in shipped_applications() or is_folder(statement):
        raise UsageError(
            f"give a SELECT after the application: caudal sql {statement} 'SELECT ...'"
        )
    tree = _tree(statement)
    if folder is not None:
        _refuse_readers(tree)
    changed = _spool_arguments(tree)
    common = {str(entry["key"]).lower() for entry in _cte_entries(tree)}
    common |= {name.lower() for name in frames}
    named = {
        place: _full_name(node) for place, node in enumerate(_nodes(tree, "BASE_TABLE"))
        if _full_name(node).lower() not in common and _is_file(_full_name(node), folder or Path())
    }  # fmt: skip
    nodes = list(_nodes(tree, "BASE_TABLE"))
    taken = common | {str(node["table_name"]).lower() for place, node in enumerate(nodes)
                      if place not in named}  # fmt: skip
    tables: dict[str, Table] = {}
    text = statement
    for place, path in named.items():
        node = nodes[place]
        before = dict(node)
        if not _is_duckdbs(path):
            if path not in tables:
                tables[path] = _table(path, folder or Path(), taken, reading)
            _point(node, tables[path].name, path)
        elif engine is not Engine.EMBEDDED:
            raise UsageError(f"only CSV files can be read with --engine {engine}, not {path}")
        elif folder is not None and not Path(path).is_absolute():
            _point(node, str(folder / path), path)
        text = _replaced(text, before, node, path)
    written = statement
    if changed or named:
        statement = text if plain(parse_tree(text)) == plain(tree) else tree_text(tree)
    app = Application(ADHOC, "", folder or Path(), tuple(tables.values()), ())
    return with_adhoc_query(app, statement, written)


def _is_file(name: str, folder: Path) -> bool:
    """Return whether a table's name is that of a file: by its ending, or because there is one."""
    if name in STANDARD_INPUT or name.startswith(S3) or _ending(name) in (*_OURS, *_DUCKDB):
        return True
    try:
        return (folder / name).is_file() or is_once_readable(str(folder / name))
    except OSError:
        return False


def _is_duckdbs(name: str) -> bool:
    return name.endswith(_DUCKDB) and not name.startswith(S3)


def _ending(name: str) -> str:
    from caudal.files.compressed import COMPRESSION

    path = Path(name)
    return (path.with_suffix("") if path.suffix in COMPRESSION else path).suffix.lower()


def _spool_arguments(tree: Any) -> bool:
    """Copy inputs that DuckDB could read once only, and name the copies; return whether any."""
    changed = False
    for node in _nodes(tree, "TABLE_FUNCTION"):
        for argument in node["function"]["arguments"][:1]:
            literal = argument["expression"].get("literal") or {}
            if literal.get("kind") == "STRING" and is_once_readable(literal["text"]):
                literal["text"] = str(spooled(literal["text"]))
                changed = True
    return changed


def _table(pattern: str, folder: Path, taken: set[str], reading: Reading) -> Table:
    """Return the table of a file: original column names, types inferred from a sample."""
    from caudal.application import draft as drafting
    from caudal.application.examine import examine

    name = drafting.unused(drafting.table_name(_stem(pattern)), taken)
    files = _files(pattern, folder, reading)
    examined = examine(files)
    columns = tuple(drafting.draft_columns(examined.columns, keep_names=True))
    draft = drafting.DraftTable(name, pattern, columns)
    found = files[0].place
    spool = isinstance(found, LocalPlace) and found.shown
    return Table(
        name=name,
        files=(str(found.path),) if spool else (pattern,),
        columns=tuple(column.raw for column in columns),
        sql=drafting.table_sql(draft),
        origin=pattern,
        reading=examined.reading,
    )


def _files(pattern: str, folder: Path, reading: Reading) -> "list[InputFile]":
    try:
        return Sources(folder).files(Table(pattern, (pattern,), (), "", "", reading))
    except DataError as error:
        refused = isinstance(error.__cause__, PermissionError)
        if refused or pattern.startswith(S3) or os.path.lexists(folder / pattern):
            raise
        raise DataError(
            f"no file {pattern!r} in {folder.absolute()}: name an existing file, or give "
            "its folder with --data DIR"
        ) from None


def notes(app: Application) -> Iterator[str]:
    """Yield what to tell about the files of the tables: how they are read, what is left out."""
    for table in app.tables:
        from caudal.files.file_notes import file_notes

        files = Sources(app.folder).files(table)
        yield from file_notes(files)
        yield from _left_out(table, files)


def _left_out(table: Table, files: "Sequence[InputFile]") -> Iterator[str]:
    """Yield a note about columns that no SELECT can use.

    These are columns without a name, and columns that the first file of a pattern does not have.
    """
    from caudal.files.pieces import column_names

    names = dict.fromkeys(name for file in files for name in column_names(file))
    told = [f"{name!r} (not in {files[0].name})" for name in names
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
        raise _pointed_at(UsageError(f"the query: {reason}"), statement, tree.get("position"))
    if len(tree["statements"]) != 1:
        raise UsageError("the query: must hold one SELECT and nothing else")
    return tree


def _pointed_at(error: UsageError, statement: str, position: Any) -> UsageError:
    """Return the error with a note that points to the place in the SELECT, if it is known."""
    place = int(position) if str(position).isdecimal() else None
    if place is not None and place <= len(statement.encode()):
        before = statement.encode()[:place].decode(errors="replace")
        start, number = before.rfind("\n") + 1, before.count("\n") + 1
        line = statement[start:].partition("\n")[0]
        lead = f"  line {number}: "
        error.add_note(f"{lead}{line}\n{' ' * (len(lead) + len(before) - start)}^")
    return error


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
    node["alias"] = node["alias"] or ("" if _stem(path) == name else _stem(path))
    node["qualified_name"] = {"path": [name]}


def _replaced(text: str, before: dict[str, Any], node: dict[str, Any], path: str) -> str:
    """Return the SELECT with the new name of a table in place of a file's, and as long as before.

    So a message of DuckDB about a place in it is true for what the user wrote. If the name does not
    fit, or the text is not as expected, return the SELECT as it is.
    """
    start = int(before["query_location"])
    forms = (f"'{path}'", f'"{path}"', path)
    form = next((one for one in forms if text.startswith(one, start)), None)
    name = quote(str(node["table_name"]))
    if not before["alias"] and node["alias"]:
        name += f" AS {quote(str(node['alias']))}"
    if form is None or len(name) > len(form) or not text.isascii():
        return text
    return text[:start] + name.rjust(len(form)) + text[start + len(form) :]


def _stem(path: str) -> str:
    if path in STANDARD_INPUT:
        return "stdin"
    from caudal.files.compressed import COMPRESSION

    name = Path(path).name
    bare = Path(name).with_suffix("").name if Path(name).suffix in COMPRESSION else name
    return bare.removesuffix(Path(bare).suffix) if _ending(name) in (*_OURS, *_DUCKDB) else bare


def _refuse_readers(tree: Any) -> None:
    for node in _nodes(tree, "TABLE_FUNCTION"):
        name = str(node["function"]["function_name"]).lower()
        if name.startswith(("read_", "parquet_", "glob", "sniff_")):
            raise UsageError(
                f"--data works for files named in FROM only, not for {name}(): "
                "write the whole path there and leave --data out"
            )
