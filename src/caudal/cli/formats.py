"""Results as bytes: JSON, CSV, Parquet, Arrow."""

import csv
import io
import json
import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from caudal.answers import Result, plain
from caudal.cli.files import whole_file


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


BINARY = frozenset({Format.PARQUET, Format.ARROW})


def encode(result: Result, form: Format) -> bytes:
    """One result in one format."""
    match form:
        case Format.JSON:
            return json_bytes(result.rows())
        case Format.PARQUET:
            sink = io.BytesIO()
            pq.write_table(result.table, sink)
            return sink.getvalue()
        case Format.ARROW:
            sink = io.BytesIO()
            with pa.ipc.new_file(sink, result.table.schema) as writer:
                writer.write_table(result.table)
            return sink.getvalue()
        case _:
            return _csv(result)


def write_results(results: Mapping[str, Result], folder: Path, form: Format) -> list[Path]:
    """One file per query."""
    form = Format.CSV if form is Format.TABLE else form
    written = []
    for name, result in results.items():
        path = folder / f"{name}.{form.value}"
        with whole_file(path) as file:
            file.write(encode(result, form))
        written.append(path)
    return written


def json_bytes(value: Any) -> bytes:
    """JSON that any reader accepts: dates as text, no NaN."""
    text = json.dumps(_portable(value), ensure_ascii=False, indent=1, default=str)
    return text.encode() + b"\n"


def _portable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _portable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(item) for item in value]
    return value


def _csv(result: Result) -> bytes:
    """Lists and structs stand as JSON inside their field; null is an empty field."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.table.column_names)
    for batch in result.table.to_batches(max_chunksize=65_536):
        columns = [[plain(value) for value in column.to_pylist()] for column in batch.columns]
        writer.writerows([_cell(value) for value in row] for row in zip(*columns, strict=True))
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(_portable(value), ensure_ascii=False, default=str)
    return value
