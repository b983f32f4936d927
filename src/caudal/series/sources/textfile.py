"""The cells of a CSV file, by line and column name, read by the CSV reader in kernels/csv."""

from collections.abc import Sequence

from caudal.kernels.csv import Batch, Stream, cut_batches, read_batch
from caudal.series.config import Series, SeriesConfig
from caudal.series.errors import SourceError
from caudal.series.sources.observations import RejectedCell, Row, SourceReading, read_series


def read_csv(stream: Stream, name: str, config: SeriesConfig) -> SourceReading:
    """Read the observations of every configured series of a CSV file."""
    reading = SourceReading()
    rows: dict[str, list[Row]] = {series.internal_series_code: [] for series in config.series}
    for batch in cut_batches(stream, name):
        _gather(batch, name, config.series, rows, reading)
    for series in config.series:
        read_series(series, rows[series.internal_series_code], config, reading)
    return reading


def _gather(
    batch: Batch,
    name: str,
    wanted: Sequence[Series],
    rows: dict[str, list[Row]],
    reading: SourceReading,
) -> None:
    """Add the cells of a batch to the rows of each series. A damaged record is rejected once."""
    columns = list(dict.fromkeys(c for s in wanted for c in (s.date_column, s.value_column)))
    for column in columns:
        if column not in batch.header.names:
            found = ", ".join(batch.header.names)
            raise SourceError(f"{name} has no column {column!r}; its columns are: {found}")
        if batch.header.names.count(column) > 1:
            raise SourceError(
                f"{name} has two columns {column!r}: it is unknown which of them to use; "
                "rename one of them in the file"
            )
    text = read_batch(batch, columns)
    lines = batch.lines(text.starts).tolist()
    cells = {column: text.table.column(column).to_pylist() for column in columns}
    for line, reason in text.damaged:
        reading.rejected.append(RejectedCell("", "", line, "", reason))
    for series in wanted:
        pairs = zip(lines, cells[series.date_column], cells[series.value_column], strict=True)
        first = series.first_row or 1
        rows[series.internal_series_code] += [Row(*row) for row in pairs if row[0] >= first]
