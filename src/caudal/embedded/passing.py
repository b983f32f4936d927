"""One pass over a table's files: a query takes the rows while they are read.

Rules
1. A query passes over the rows only if DuckDB's plan says that it takes those of one table once, in
   their order (duck/one_pass.py). All other queries read whole tables first (loading.py).
2. The rows are those of whole tables: the same pieces, cleaned in the same way, in the same order.
3. When the query needs no more rows (LIMIT), or nobody takes its rows any more (`| head`), reading
   ends. The report says how far it came, since rejected rows are counted up to there only. So a run
   that is strict, or that lists all rejected rows, reads whole tables.
4. DuckDB asks for rows in a thread of its own. What the caller is told (rejected rows, progress) is
   told in the caller's thread. An error of reading is raised as it is, not as one of DuckDB.
"""

import contextlib
import itertools
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow as pa

from caudal.duck.arrow_casts import readable, without_loss
from caudal.duck.bind import BoundQuery, TableLoad
from caudal.duck.clean import note_rejects
from caudal.duck.database import Connection
from caudal.duck.one_pass import Passes
from caudal.embedded.loading import Loader
from caudal.embedded.parts import parts_of
from caudal.embedded.read_progress import ReadingProfile
from caudal.errors import CaudalError, QueryError
from caudal.files.file_notes import file_notes
from caudal.files.inputs import InputFile
from caudal.files.pieces import Cleaned
from caudal.sql.quoting import quote

_SMALL_BATCH_BYTES = 1 << 20  # the first rows of large pieces would come late
_RELATION = "passing rows"


@contextlib.contextmanager
def passing(
    bound: BoundQuery, load: TableLoad, files: Sequence[InputFile], loader: Loader
) -> Iterator[Iterator[pa.Table]]:
    """Provide the rows of a query that passes over the rows of one table."""
    batch_bytes = loader.options.read_bytes
    if bound.passes is Passes.FIRST_ROWS:
        batch_bytes = min(batch_bytes, _SMALL_BATCH_BYTES)
    with (
        without_loss(loader.connection),
        loader.cleaned(load, files, batch_bytes) as pieces,
        ThreadPoolExecutor(1, thread_name_prefix="caudal-rows") as thread,
    ):
        rows = _PassingRows(next(pieces), pieces)
        reading = _PassReport(rows, load, files, loader)
        with (
            _relation(loader.connection, load, rows) as cursor,
            contextlib.closing(parts_of(bound, cursor, thread)) as parts,
            contextlib.closing(reading.told(parts)) as told,
        ):
            yield told


@contextlib.contextmanager
def _relation(
    connection: Connection, load: TableLoad, rows: "_PassingRows"
) -> Iterator[Connection]:
    """Provide a cursor for which the rows are the table, with the types of the stored table."""
    cursor = connection.cursor()
    typed = ", ".join(
        f"CAST({quote(column)} AS {kind}) AS {quote(column)}"
        for column, kind in load.stored_types.items()
    )
    try:
        cursor.execute("SET SESSION arrow_lossless_conversion = false")  # rows for people
        with readable(cursor, _RELATION, rows):
            cursor.execute(
                f"CREATE TEMP VIEW {quote(load.table.name)} AS "
                f"SELECT {load.shown} FROM (SELECT {typed} FROM {quote(_RELATION)})"
            )
            yield cursor
    finally:
        cursor.close()


class _PassingRows:
    """The rows of pieces, as a stream that can be read once."""

    def __init__(self, first: Cleaned, others: Iterator[Cleaned]) -> None:
        self.schema = first.rows.schema
        self.pieces = itertools.chain([first], others)
        self.given: deque[Cleaned] = deque()  # without their rows
        self.error: Exception | None = None
        self._begun = False

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            if self._begun:
                raise RuntimeError("rows that pass were asked for twice")
            self._begun = True
            for piece in self.pieces:
                self.given.append(replace(piece, rows=piece.rows.slice(0, 0)))
                yield from piece.rows.to_batches()
        except Exception as error:
            self.error = error
            raise


@dataclass
class _PassReport:
    """What to tell about the pieces whose rows were given to the query."""

    rows: _PassingRows
    load: TableLoad
    files: Sequence[InputFile]
    loader: Loader
    _profile: ReadingProfile = field(init=False)

    def __post_init__(self) -> None:
        name = self.load.table.name
        self._profile = ReadingProfile(name, self.files, self.loader.progress)

    def told(self, parts: Iterator[pa.Table]) -> Generator[pa.Table]:
        """Yield the parts of the answer, and tell in between how far reading has come."""
        try:
            for part in parts:
                self._tell()
                yield part
        except QueryError:
            if self.rows.error is not None:
                raise self.rows.error from None
            raise
        self._tell()
        self._tell_end()

    def _tell(self) -> None:
        while self.rows.given:
            piece = self.rows.given.popleft()
            note_rejects(self.loader.rejects, piece, self.load.table, strict=False)
            self._profile.note(piece)

    def _tell_end(self) -> None:
        """Tell what the files are like, and if reading ended before they did, where."""
        self.loader.rejects.notes += file_notes(self.files)
        if not self._has_more():
            self._profile.finished()
            return
        done, total = (size / 1e6 for size in self._profile.progress)
        self.loader.rejects.unread.append(
            f"{self.load.table.name}: the answer needed {done:,.1f} of {total:,.1f} MB; the rest "
            "was not read, and its rejected rows are not counted"
        )

    def _has_more(self) -> bool:
        try:
            return next(self.rows.pieces, None) is not None
        except CaudalError:  # of a piece that the answer does not need
            return True
