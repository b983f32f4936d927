"""The store of a run in one process: batches of plain CSV files stay in their files.

Rules
1. All objects are below one folder of the store. A cluster may use the same store, and its workers
   cannot read the files of this machine.
2. If a batch is a range of a local file, only its head is stored: the file, the range, the digest.
   `read` returns head and records together, as if both were stored.
3. If records no longer match their digest, `read` raises an error that names the file. This does
   not fail the job, because the file may be restored.
4. The newest batches are kept in memory until they are mapped, because their tasks run next.
5. If a run cannot be resumed, only heads are stored, for every kind of file. The records are in
   memory until they are mapped. The runner limits how many batches wait.
6. The first error of the store or of a file is kept. The run ends with this error and can be
   resumed later. A cluster would retry instead.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock

from caudal.errors import AlreadyExistsError, DataError, NotFoundError, StoreError
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.digest import digest
from caudal.store.port import PAGE, Page, Store

FOLDER = "runs/"
_BATCHES, _MAPPED = "/batches/", "/mapped/"


class ChangedFileError(DataError):
    """A file changed since the run began: restore it, or start another run."""


class BorrowingStore(Store):
    """A store in a folder of another store. It reads records from local files."""

    def __init__(self, store: Store, kept: int | None) -> None:
        """Keep this many batches in memory; None: all that are not mapped (rule 5)."""
        self._store = store
        self._kept = kept
        self._fresh: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()
        self.failure: StoreError | ChangedFileError | None = None
        self.plain: frozenset[str] = frozenset()  # files of which a range of bytes is records

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        """See the port."""
        head = self._head_alone(key, data)
        with self._noting_failures():
            self._store.create(FOLDER + key, data if head is None else head, lasting=lasting)
        if head is not None and isinstance(data, bytes):
            self._keep(key, data)
        if _MAPPED in key:
            with self._lock:
                self._fresh.pop(key.replace(_MAPPED, _BATCHES, 1), None)

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        """See the port."""
        if _BATCHES not in key:
            with self._noting_failures():
                return self._store.read(FOLDER + key, offset, length)
        whole = self._whole_batch(key)
        return whole[offset:] if length is None else whole[offset : offset + length]

    def head(self, key: str) -> batch_format.BatchHeader:
        """Return the header of a batch."""
        with self._noting_failures():
            return batch_format.describe(lambda *at: self._store.read(FOLDER + key, *at), key)

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        """See the port. The size of a borrowed batch is the size of its head."""
        with self._noting_failures():
            page = self._store.list(
                FOLDER + prefix,
                recursive=recursive,
                after=FOLDER + after if after else "",
                limit=limit,
            )
        return Page(
            tuple(replace(one, key=_bare(one.key)) for one in page.entries),
            tuple(map(_bare, page.folders)),
            None if page.last is None else _bare(page.last),
        )

    def delete(self, key: str, *, lasting: bool = True) -> None:
        """See the port."""
        with self._noting_failures():
            self._store.delete(FOLDER + key, lasting=lasting)

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        """Raise: only series replace objects, and they never use this store."""
        raise StoreError(f"{key} cannot be replaced: nothing of a run ever is")

    def _head_alone(self, key: str, data: bytes | Path) -> bytes | None:
        """The head of a batch, of every one (rule 5) or of those whose records can be read from
        their file again; None otherwise."""
        if _BATCHES not in key or not isinstance(data, bytes):
            return None
        index, body = frame.decode(
            frame.of_bytes(data), batch_format.MAGIC, batch_format.BatchHeader, key
        )
        is_plain = index.codec == "none" and index.records == "csv" and index.file in self.plain
        return data[:body] if self._kept is None or is_plain else None

    def _keep(self, key: str, data: bytes) -> None:
        with self._lock:
            self._fresh[key] = data
            while self._kept is not None and len(self._fresh) > self._kept:
                self._fresh.popitem(last=False)

    def _whole_batch(self, key: str) -> bytes:
        with self._lock:
            fresh = self._fresh.get(key)
        if fresh is not None:
            return fresh
        with self._noting_failures():
            stored = self._store.read(FOLDER + key)
        index, body = frame.decode(
            frame.of_bytes(stored), batch_format.MAGIC, batch_format.BatchHeader, key
        )
        return stored if len(stored) > body else stored + self._borrowed(index)

    def _borrowed(self, index: batch_format.BatchHeader) -> bytes:
        try:
            return _records(index)
        except ChangedFileError as error:
            self.failure = self.failure or error
            raise StoreError(str(error)) from error

    @contextmanager
    def _noting_failures(self) -> Iterator[None]:
        try:
            yield
        except (NotFoundError, AlreadyExistsError):
            raise
        except StoreError as error:
            self.failure = self.failure or error
            raise


def _bare(key: str) -> str:
    return key[len(FOLDER) :]


def _records(index: batch_format.BatchHeader) -> bytes:
    """Return the records of a batch from their file."""
    try:
        with Path(index.file).open("rb") as file:
            file.seek(index.offset)
            records = file.read(index.bytes)
    except OSError as error:
        raise ChangedFileError(f"cannot read {index.file}: {error.strerror}") from error
    if len(records) != index.bytes or digest(records) != index.digest:
        raise ChangedFileError(
            f"{index.file}: the file changed since the unfinished run began: bring it back, or "
            "give another --store"
        )
    return records
