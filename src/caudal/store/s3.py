"""A store in a bucket of S3, or of a compatible server.

1. `create` is one PUT with `If-None-Match: *`. Its outcome can be unknown: the answer was lost, or
   the client library repeated a PUT that had succeeded and got "exists". So after any answer but
   success, `create` reads the object. Its own bytes mean success, other bytes mean
   AlreadyExistsError. If there is no object, it tries again (repeating a conditional PUT is safe),
   three times in all.
2. Uploads are never multipart, because client libraries and servers differ in whether the
   condition applies to them. So an object has at most 5 GiB, S3's limit for one PUT. Local files
   are mapped into memory, not copied; they must not shrink during the upload.
3. Listings rely neither on S3's order nor on start-after, because not every server implements them
   correctly: SeaweedFS 4.48 lists folder `a` before `a-b`, and start-after `a/c` skips `a/c/d`.
   Everything below a folder is read with continuation tokens, one request per thousand keys, and
   sorted here. Every page reads all of it and keeps its own part, so pages should be large
   (`port.pages`). Two kinds of listing are read level by level instead (`walk.py`), one request
   per thousand names of each level that a page touches: a listing of one level, and one of a
   prefix that ends within a name, because its folder may hold many other keys. An object `a/`,
   which some tools use to mark a folder, is listed as `a`. Empty folders, which SeaweedFS keeps
   for two or three minutes, are not listed.
4. Errors name the operation, the key, the status and S3's code. They never contain the server's
   whole answer, which can hold the access key and the signed text.
5. The settings bound the time: each request has a timeout, and repeats have a maximum number and a
   maximum time. A server that says nothing for seconds is asked again on another connection: for
   what is read and listed, and for creates, which may land late without harm. Deletes and plain
   PUTs may not. They, and large objects, during which a server is silent, have a client of their
   own, which is patient.

The server must honour the condition: `probe.py` tests that.
"""

import heapq
import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from obstore import exceptions
from obstore.store import S3Store as Bucket

from caudal.errors import AlreadyExistsError, NotFoundError, StoreError, UsageError
from caudal.store import content, keys, walk
from caudal.store.port import PAGE, Entry, Page, Store
from caudal.store.s3_settings import S3Settings

if TYPE_CHECKING:
    from obstore import ObjectMeta

__all__ = ["S3Settings", "S3Store"]

MAX_BYTES = 5 << 30
MAX_PREFIX_BYTES = 1024 - keys.MAX_KEY_BYTES - 1
_ATTEMPTS = 3
_SMALL_BYTES = 16 << 10  # many at once are sent within seconds, even at 100 kB/s
_CLOCK = ".caudal-clock"  # a reserved name, never listed
_REFUSALS = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
_STATUS = re.compile(r"status code: (\d{3}(?: [A-Z][A-Za-z]*)*)")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")


class _Found(Enum):
    OURS = "our bytes"
    OTHERS = "other bytes"
    NOTHING = "no object"


class S3Store(Store):
    """A store that keeps objects in a bucket, below a prefix."""

    parallel_requests = 16

    def __init__(self, bucket: str, prefix: str, settings: S3Settings) -> None:
        """Prepare the client. The first operation connects."""
        if prefix:
            keys.check_key(prefix)
        if len(prefix.encode()) > MAX_PREFIX_BYTES:
            raise UsageError(f"the prefix in s3://{bucket} is longer than {MAX_PREFIX_BYTES} bytes")
        self._name = f"s3://{bucket}/{prefix}".rstrip("/")
        self._remote, self._patient = (
            Bucket(
                bucket,
                prefix=prefix or None,
                config=settings.config(),
                client_options=settings.client_options(patient=patient),
                retry_config=settings.retry_config(),
                credential_provider=settings.credential_provider(),
            )
            for patient in (False, True)
        )

    def __repr__(self) -> str:
        return f"S3Store({self._name!r})"

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        """See the port, and rule 1 of this module."""
        keys.check_key(key)
        failure: Exception | None = None
        for _ in range(_ATTEMPTS):
            failure = self._try_create(key, data)
            if failure is None:
                return
            found = self._look(key, data)
            if found is _Found.OURS:
                return
            if found is _Found.OTHERS:
                raise AlreadyExistsError(f"{key} is taken by another object")
        raise self._error("create", key, failure)

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        """See the port. A range at or after the end costs a second request."""
        keys.check_key(key)
        keys.check_range(offset, length)
        if offset == 0 and length is None:
            return self._get(key)
        if length == 0:
            self._head(key)
            return b""
        try:
            return self._get_range(key, offset, length)
        except exceptions.BaseError as error:
            # Compare with the size, to tell a range after the end from any other error.
            if self._head(key)["size"] <= offset:
                return b""
            raise self._error("read", key, error) from None

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        """See the port, and rule 3 of this module."""
        keys.check_prefix(prefix)
        if recursive and (not prefix or prefix.endswith("/")):
            return self._below(prefix, after, limit)
        found: dict[str, Entry] = {}

        def level(folder: str) -> Iterator[str]:
            return self._level(folder, found)

        walked = walk.walk(level, prefix, recursive=recursive, after=after)
        return walk.page(walked, found.get, limit)

    def delete(self, key: str, *, lasting: bool = True) -> None:
        """See the port."""
        keys.check_key(key)
        try:
            with self._errors("delete", key):
                self._patient.delete(key)
        except NotFoundError:
            return

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        """See the port. Sends a plain PUT, with or without a twin. The tag is S3's ETag."""
        keys.check_key(key)
        keys.check_key(key if twin is None else twin)
        with self._errors("replace", key):
            return self._put(key, data, "overwrite")

    def time(self) -> float:
        """See the port. Puts an object and returns the time that the server gives it."""
        with self._errors("read the clock with", _CLOCK):
            self._put(_CLOCK, b"", "overwrite")
            return self._remote.head(_CLOCK)["last_modified"].timestamp()

    def _try_create(self, key: str, data: bytes | Path) -> Exception | None:
        try:
            self._put(key, data, "create")
        except (*_REFUSALS, FileNotFoundError) as error:
            raise self._error("create", key, error) from None
        except exceptions.BaseError as error:
            return error
        return None

    def _put(self, key: str, data: bytes | Path, mode: Literal["create", "overwrite"]) -> str:
        if (size := content.size(data)) > MAX_BYTES:
            raise UsageError(f"{key} is too large for S3: an object has at most 5 GiB")
        may_hurry = mode == "create" and size <= _SMALL_BYTES
        remote = self._remote if may_hurry else self._patient
        with _body(data) as body:
            result = remote.put(key, body, mode=mode, use_multipart=False)
        return result["e_tag"] or ""

    def _look(self, key: str, data: bytes | Path) -> _Found:
        try:
            if self._head(key)["size"] != content.size(data):
                return _Found.OTHERS
            with self._errors("read", key):
                pieces = self._remote.get(key).stream(min_chunk_size=content.PIECE_BYTES)
                same = content.same(data, map(bytes, pieces))
            return _Found.OURS if same else _Found.OTHERS
        except NotFoundError:
            return _Found.NOTHING

    def _head(self, key: str) -> "ObjectMeta":
        with self._errors("read", key):
            return self._remote.head(key)

    def _get(self, key: str) -> bytes:
        with self._errors("read", key):
            return bytes(self._remote.get(key).bytes())

    def _get_range(self, key: str, offset: int, length: int | None) -> bytes:
        try:
            if length is None:
                return bytes(self._remote.get(key, options={"range": {"offset": offset}}).bytes())
            return bytes(self._remote.get_range(key, start=offset, length=length))
        except FileNotFoundError as error:
            raise self._error("read", key, error) from None

    def _below(self, folder: str, after: str, limit: int) -> Page:
        with self._errors("list", folder):
            first = heapq.nsmallest(limit + 1, self._flat(folder, after), key=lambda one: one.key)
        last = first[limit - 1].key if len(first) > limit else None
        return Page(tuple(first[:limit]), last=last)

    def _flat(self, folder: str, after: str) -> Iterator[Entry]:
        for chunk in self._remote.list(folder.rstrip("/") or None, chunk_size=PAGE):
            for meta in chunk:
                key = meta["path"]
                if key > after and all(map(keys.is_name, key[len(folder) :].split("/"))):
                    yield _entry(key, meta)

    def _level(self, folder: str, found: dict[str, Entry]) -> Iterator[str]:
        with self._errors("list", folder):
            listed = self._remote.list_with_delimiter(folder.rstrip("/") or None)
        for path in listed["common_prefixes"]:
            name = path[len(folder) :].rstrip("/")
            if keys.is_name(name):
                yield f"{name}/"
        for meta in listed["objects"]:
            key = meta["path"]
            if keys.is_name(key[len(folder) :]):
                found[key] = _entry(key, meta)
                yield key[len(folder) :]

    @contextmanager
    def _errors(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except (exceptions.BaseError, FileNotFoundError) as error:
            raise self._error(verb, key, error) from None

    def _error(self, verb: str, key: str, error: Exception | None) -> StoreError:
        if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
            return NotFoundError(f"there is no object {key}")
        return StoreError(f"cannot {verb} {key} in {self._name}: {_reason(error)}")


def _entry(key: str, meta: "ObjectMeta") -> Entry:
    return Entry(key, meta["size"], meta["e_tag"] or "", meta["last_modified"].timestamp())


@contextmanager
def _body(data: bytes | Path) -> Iterator[bytes | mmap.mmap]:
    """Yield the bytes to send. A file is mapped into memory, so that it is not copied.

    The map is not closed here, because a request that timed out may still use it. It is closed
    when the last reference to it is gone.
    """
    if isinstance(data, bytes):
        yield data
        return
    with content.opened(data) as source:
        if content.size(data) == 0:
            yield b""
            return
        yield mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)


def _reason(error: Exception | None) -> str:
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    if status is None:
        return "the server cannot be reached, or is too slow; check the endpoint"
    hint = "; check the credentials and their rights" if status[1][:3] in ("401", "403") else ""
    return f"the server answered {status[1]}{f' ({code[1]})' if code else ''}{hint}"
