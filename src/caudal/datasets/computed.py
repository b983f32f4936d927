"""Values of computed columns, kept beside the files of a dataset: derived, no part of a version.

    computed/{versions}/{expression}/{file}-{count:012}-{digest}.arrow

An object has for each row of a file whether the value of an expression such as `sentiment(text)` is
known, and the value. A question computes the values that it needs and that are not known, and keeps
all of them as a new object.

Rules
1. The key names everything that a value depends on: `versions` is a digest of the versions of
   Caudal, its kernels with the lexicon, DuckDB and pyarrow, `expression` one of the function and
   the column, `file` that of the file. Whatever has this key has these values. Functions that
   depend on anything else are not kept (`KEPT`).
2. `digest` is that of the object's bytes, `count` the number of known values, and the bytes repeat
   what they are of. What does not fit its key is deleted.
3. Any object may be deleted at any time: its values are computed again. Readers read it whole.
   Whoever keeps more values deletes the objects with fewer. A vacuum deletes what belongs to other
   versions of Caudal, or to files that the newest version does not name.
4. A question never fails because values cannot be read or kept.
5. Small files are not worth an object: their values take no longer than reading one.
"""

import contextlib
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.datasets import keys
from caudal.datasets.contents import Contents, HeldFile
from caudal.datasets.kernels_version import kernels_version
from caudal.errors import StoreError
from caudal.formats.digest import digest
from caudal.store.port import Entry, Store, entries
from caudal.version import __version__

KEPT = frozenset({"sentiment"})  # a value depends on the text only, if the model is the lexicon
LEAST_BYTES = 1 << 20  # of a file whose values are kept

_NAME = re.compile(r"([0-9a-f]{32})-(\d{12})-([0-9a-f]{32})\.arrow\Z")
_OF = b"caudal.of"  # metadata of an object: what its values are of
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class Values:
    """The values of a column, for the rows of which they are known."""

    known: NDArray[np.bool_]
    value: NDArray[np.float64]

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.known))


def no_values(rows: int) -> Values:
    return Values(np.zeros(rows, np.bool_), np.zeros(rows))


@dataclass
class KeptValues:
    """The values of one expression that a dataset keeps, by the digest of their file."""

    store: Store
    folder: str
    names: dict[str, list[str]] = field(default_factory=dict)  # those with most values first

    def of(self, file: HeldFile) -> Values:
        """Return the values of the rows of a file; those that nobody computed are not known."""
        for name in self.names.get(file.digest, ()):
            found = _decoded(self._bytes(name), name, self._about(file), file.rows)
            if found is not None:
                return found
            with contextlib.suppress(StoreError):
                self.store.delete(self.folder + name, lasting=False)
        return no_values(file.rows)

    def keep(self, file: HeldFile, values: Values) -> None:
        """Keep the values of the rows of a file, instead of those that were kept (rule 4)."""
        if file.bytes < LEAST_BYTES:
            return
        data = _encoded(values, self._about(file))
        name = f"{file.digest}-{values.count:012}-{digest(data)}.arrow"
        with contextlib.suppress(StoreError):
            self.store.create(self.folder + name, data, lasting=False)
            for old in self.names.get(file.digest, ()):
                if old != name:
                    self.store.delete(self.folder + old, lasting=False)

    def _about(self, file: HeldFile) -> bytes:
        """Return what an object repeats of its key."""
        return f"{self.folder}{file.digest}".encode()

    def _bytes(self, name: str) -> bytes:
        with contextlib.suppress(StoreError):
            return self.store.read(self.folder + name)
        return b""


def kept_values(store: Store, function: str, column: str) -> KeptValues:
    """Return what a dataset keeps of a function of a column."""
    expression = digest(msgspec.json.encode([function, column]))
    kept = KeptValues(store, f"{keys.COMPUTED}{_versions()}/{expression}/")
    with contextlib.suppress(StoreError):
        for entry in entries(store, kept.folder):
            name = entry.key.removeprefix(kept.folder)
            if found := _NAME.match(name):
                kept.names.setdefault(found[1], []).append(name)
    for names in kept.names.values():
        names.sort(reverse=True)
    return kept


def useless(found: Iterable[Entry], contents: Contents, before: float) -> list[Entry]:
    """Return the objects that no question will read again, apart from those younger than `before`
    (rule 3)."""
    ours = f"{keys.COMPUTED}{_versions()}/"
    needed = {file.digest for files in contents.tables.values() for file in files}

    def is_needed(key: str) -> bool:
        name = _NAME.match(key.rpartition("/")[2])
        return key.startswith(ours) and name is not None and name[1] in needed

    return [one for one in found if one.modified <= before and not is_needed(one.key)]


@cache
def _versions() -> str:
    made_by = (__version__, kernels_version(), *map(metadata.version, ("duckdb", "pyarrow")))
    return digest(msgspec.json.encode(made_by))


def _encoded(values: Values, about: bytes) -> bytes:
    value = np.where(values.known, values.value, 0.0)
    rows = pa.table({"known": values.known, "value": value}).replace_schema_metadata({_OF: about})
    written = io.BytesIO()
    with pa.ipc.new_stream(written, rows.schema, options=_OPTIONS) as stream:
        stream.write_table(rows)
    return written.getvalue()


def _decoded(data: bytes, name: str, about: bytes, rows: int) -> Values | None:
    """Return the values of an object; None unless it is what its name says (rule 2)."""
    stated = _NAME.match(name)
    if stated is None or digest(data) != stated[3]:
        return None
    try:
        table = pa.ipc.open_stream(data).read_all()
        values = Values(
            table.column("known").to_numpy().astype(np.bool_),
            table.column("value").to_numpy().astype(np.float64),
        )
    except (pa.ArrowException, LookupError, ValueError):
        return None
    is_whole = len(values.known) == len(values.value) == rows
    is_stated = values.count == int(stated[2]) and (table.schema.metadata or {}).get(_OF) == about
    return values if is_whole and is_stated else None
