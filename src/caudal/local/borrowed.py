"""The store of a run in one process: batches of plain CSV files stay in their files.

Rules
1. Everything lies below one folder of the store, away from the jobs of a cluster that may use the
   same store: its workers could not read this machine's files.
2. Of a batch that is a range of a local file only the head is stored: which file, which range,
   which digest. Whoever reads the batch gets head and records together, as if all were stored.
3. Records that no longer match their digest are an error about the file, never other rows. It does
   not fail the job: the file may come back.
4. The batches that were created last are kept in memory until they are mapped, since their tasks
   run next.
5. Of a run that nobody can resume only the heads are stored, whatever the files are: the records
   are in memory until they are mapped. The runner bounds how many wait.
6. The first error of the store or of a file is remembered: such a run ends with it, to be resumed
   when all is well again, where a cluster would go on trying.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock

from caudal.errors import AlreadyExistsError, DataError, NotFoundError, StoreError
from caudal.files.pieces import is_compressed
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.digest import digest
from caudal.store.port import PAGE, Page, Store

FOLDER = "runs/"
_BATCHES, _MAPPED = "/batches/", "/mapped/"


class ChangedFileError(DataError):
    """A file is not what it was when the run began: bring it back, or begin another run."""


class BorrowingStore(Store):
    """A store below a folder of another one, which borrows records from local files."""

    def __init__(self, store: Store, kept: int | None) -> None:
        """`kept` batches stay in memory; None: all that are not mapped (rule 5)."""
        self._store = store
        self._kept = kept
        self._fresh: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()
        self.failure: StoreError | ChangedFileError | None = None

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        """See the port."""
        head = _head_alone(key, data, every=self._kept is None)
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
        """What a batch says about itself."""
        with self._noting_failures():
            return batch_format.describe(lambda *at: self._store.read(FOLDER + key, *at), key)

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        """See the port. Sizes of borrowed batches are those of their heads."""
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
        """Only series replace anything, and they never use this store."""
        raise StoreError(f"{key} cannot be replaced: nothing of a run ever is")

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


def _head_alone(key: str, data: bytes | Path, *, every: bool) -> bytes | None:
    """The head of a batch, of `every` one or of those whose records can be read from their file
    again; None otherwise."""
    if _BATCHES not in key or not isinstance(data, bytes):
        return None
    index, body = frame.decode(
        frame.of_bytes(data), batch_format.MAGIC, batch_format.BatchHeader, key
    )
    plain = index.codec == "none" and index.records == "csv"
    return data[:body] if every or (plain and not is_compressed(Path(index.file))) else None


def _records(index: batch_format.BatchHeader) -> bytes:
    """The records of a batch, from their file."""
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
