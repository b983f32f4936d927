"""Write and read the Parquet files of a dataset."""

import msgspec
import pyarrow as pa

from caudal.datasets import keys
from caudal.datasets.contents import HeldFile
from caudal.datasets.documents import StoredFile
from caudal.datasets.parquet import stored_file
from caudal.errors import AlreadyExistsError, FormatError, NotFoundError
from caudal.formats.digest import digest
from caudal.formats.file_groups import GroupFile
from caudal.store.port import Store


class MissingFileError(FormatError):
    """A file is not there: it was deleted, by a vacuum or by hand."""


def create_file(store: Store, table: str, folder: str, name: str, rows: pa.Table) -> StoredFile:
    """Create a file of a table; return what a version says of it."""
    return create_stored(store, table, *stored_file(f"{folder}/{name}.parquet", rows))


def create_stored(store: Store, table: str, file: StoredFile, data: bytes) -> StoredFile:
    """Create a file of these bytes; return what a version says of it.

    The name depends on what is loaded, so a file of that name normally has the same bytes. If other
    bytes were there (a model that gives other floats each time), the digest becomes a part of it.
    """
    try:
        store.create(keys.file_key(table, file.path), data)
    except AlreadyExistsError:
        path = f"{file.path.removesuffix('.parquet')}-{file.digest[:12]}.parquet"
        file = msgspec.structs.replace(file, path=path)
        store.create(keys.file_key(table, file.path), data)
    return file


def read_file(store: Store, table: str, file: HeldFile | StoredFile | GroupFile) -> bytes:
    """Return the bytes of a file. Raise FormatError if they are not those that were written."""
    key = keys.file_key(table, file.path)
    try:
        data = store.read(key)
    except NotFoundError:
        raise MissingFileError(f"{key} is missing: restore it from a copy of the dataset") from None
    if digest(data) != file.digest:
        raise FormatError(f"{key} is damaged: restore it from a copy of the dataset")
    return data
