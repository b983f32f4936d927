"""Where the bytes of a file are: on this machine, or in S3. Both give the same stream."""

import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from caudal import extras
from caudal.errors import DataError, UnreadableError, UsageError
from caudal.files.find import shown_path

if TYPE_CHECKING:
    from obstore.store import S3Store as Bucket

S3 = "s3://"
_MOST_OBJECTS = 100_000
_LASTING = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


@dataclass(frozen=True)
class LocalPlace:
    """A file on this machine. `shown` is its name in messages, if it is another one."""

    path: Path
    shown: str = ""

    @property
    def name(self) -> str:
        return self.shown or shown_path(self.path)

    @property
    def identity(self) -> str:
        return shown_path(self.path.absolute())

    @property
    def is_named(self) -> bool:
        """Whether its name finds it later, also from another process. That of a pipe does not, nor
        one that is not UTF-8."""
        return not self.shown and self.identity == str(self.path.absolute())

    def size(self) -> int:
        return self.path.stat().st_size

    def state(self) -> tuple[int, int, int]:
        """Return the size, and numbers that change when the file does."""
        found = self.path.stat()
        return found.st_size, found.st_mtime_ns, found.st_ino

    def open(self) -> BufferedReader:
        return self.path.open("rb")


@dataclass(frozen=True)
class S3Place:
    """An object in S3, read by ranges."""

    bucket: str
    key: str
    bytes: int
    open_object: Callable[[], Any] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return f"{S3}{self.bucket}/{self.key}"

    identity = name
    is_named = True

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.key)

    def size(self) -> int:
        return self.bytes

    def state(self) -> tuple[int, int, int]:
        """Return the size when it was found."""
        return self.bytes, 0, 0

    def open(self) -> BufferedReader:
        return BufferedReader(_RawObject(self.open_object(), self.name), 1 << 20)


Place = LocalPlace | S3Place


class _RawObject(io.RawIOBase):
    """An object as a file of Python."""

    def __init__(self, remote: Any, name: str) -> None:
        self._remote = remote
        self._name = name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._remote.seek(offset, whence))

    def tell(self) -> int:
        return int(self._remote.tell())

    def readinto(self, buffer: Any) -> int:
        try:
            data = bytes(self._remote.read(len(buffer)))
        except Exception as error:  # the library has no one class for all its errors
            raise OSError(None, "the object store did not answer as expected") from error
        buffer[: len(data)] = data
        return len(data)


def find_objects(url: str) -> list[S3Place]:
    """Return the objects of `s3://bucket/key`; the key may be a glob.

    Endpoint and credentials are those of the environment (AWS_ACCESS_KEY_ID, ...).
    """
    extras.require("s3", "an object in S3")
    import obstore
    from obstore import exceptions

    name, _, pattern = url.removeprefix(S3).partition("/")
    if not name or not pattern:
        raise UsageError(f"{url!r} names no object: write s3://bucket/key")
    bucket = _bucket(name)
    fixed = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    try:
        listed = list(_listed(bucket, fixed.rpartition("/")[0] if fixed != pattern else pattern))
    except exceptions.BaseError as error:
        reason = type(error).__name__.removesuffix("Error")
        raise DataError(f"cannot list {url}: {reason}: check bucket, endpoint and keys") from error
    objects = sorted((str(one["path"]), int(one["size"])) for one in listed)
    found = [one for one in objects if one[0] == pattern or fnmatchcase(one[0], pattern)]
    if not found:
        raise DataError(f"no object {url}: name an existing one")
    return [
        S3Place(name, key, size, lambda key=key: obstore.open_reader(bucket, key))  # type: ignore[misc]
        for key, size in found
    ]


def read_range(identity: str, offset: int, into: memoryview) -> int:
    """Read a range of a file or an object, named by the identity of its place. Return how many
    bytes there were. Raise UnreadableError if another attempt may succeed, else DataError."""
    try:
        if identity.startswith(S3):
            found = _object_range(identity, offset, len(into))
            into[: len(found)] = found
            return len(found)
        with Path(identity).open("rb", buffering=0) as file:
            file.seek(offset)
            return _filled(file, into)
    except OSError as error:
        kind = DataError if isinstance(error, _LASTING) else UnreadableError
        raise kind(f"cannot read {identity}: {error.strerror or error}") from error


def _filled(file: io.FileIO, into: memoryview) -> int:
    """Read until nothing is left, of the file or to be filled; a call may read less."""
    count = 0
    while count < len(into) and (more := file.readinto(into[count:])):
        count += more
    return count


def _object_range(url: str, offset: int, length: int) -> memoryview:
    extras.require("s3", "an object in S3")
    import obstore
    from obstore import exceptions

    name, _, key = url.removeprefix(S3).partition("/")
    try:
        return memoryview(obstore.get_range(_bucket(name), key, start=offset, length=length))
    except exceptions.BaseError as error:
        reason = type(error).__name__.removesuffix("Error")
        kind = UnreadableError if isinstance(error, exceptions.GenericError) else DataError
        raise kind(f"cannot read {url}: {reason}: check bucket, endpoint and keys") from error


def _listed(bucket: "Bucket", prefix: str) -> Iterator[Any]:
    """Yield the objects below a prefix, or the object that is called so."""
    import obstore
    from obstore import exceptions

    try:
        yield obstore.head(bucket, prefix)
        return
    except (FileNotFoundError, exceptions.NotFoundError, ValueError):
        pass
    count = 0
    for page in obstore.list(bucket, prefix or None):
        yield from page
        count += len(page)
        if count > _MOST_OBJECTS:
            raise DataError(f"more than {_MOST_OBJECTS} objects below {prefix!r}: name fewer")


def _bucket(name: str) -> "Bucket":
    from obstore.store import S3Store as Bucket

    from caudal.store.s3_settings import S3Settings

    settings = S3Settings.from_environment()
    return Bucket(
        name,
        config=settings.config(),
        client_options=settings.client_options(),
        retry_config=settings.retry_config(),
        credential_provider=settings.credential_provider(),
    )
