"""Open a store from a path or URL. This is the only module that knows every kind of store."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from caudal import extras
from caudal.errors import UsageError
from caudal.store.directory import DirectoryStore
from caudal.store.memory import MemoryStore
from caudal.store.port import Store
from caudal.store.s3_settings import S3Settings

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def open_store(url: str, *, s3: S3Settings | None = None, fsync: bool = True) -> Store:
    """Return the store that a path or a URL names.

    A path or `file:///path` is a directory, `s3://bucket/prefix` a bucket (with the settings
    `s3`; None: those of the environment), `memory:` a new store in this process. `fsync=False`
    lets a directory lose objects in a power cut. Write a path with a colon as `./a:b`.

    Raises UsageError for anything else, StoreError if the directory cannot be used.
    """
    folder = folder_of(url)
    if folder is not None:
        return DirectoryStore(folder, fsync=fsync)
    scheme = _SCHEME.match(url)
    match scheme and scheme[1].lower():
        case "memory" if url == "memory:":
            return MemoryStore()
        case "s3":
            return _open_s3(url, s3 or S3Settings.from_environment())
    raise UsageError(f"unknown store {url!r}: give a folder, file:///folder or s3://bucket/prefix")


def folder_of(url: str) -> Path | None:
    """Return the folder that a path or a URL names, or None if it names no folder."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        return Path(url).expanduser() if url else None
    return _file_path(url) if scheme[1].lower() == "file" else None


def _file_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc or not parts.path.startswith("/") or parts.query or parts.fragment:
        raise UsageError(f"{url!r} names no local folder: write file:///folder")
    return Path(unquote(parts.path))


def _open_s3(url: str, settings: S3Settings) -> Store:
    bucket, _, prefix = url[len("s3://") :].partition("/")
    if not url.lower().startswith("s3://") or not bucket:
        raise UsageError(f"{url!r} names no bucket: write s3://bucket/prefix")
    extras.require("s3", "a store in S3")
    from caudal.store.s3 import S3Store

    return S3Store(bucket, prefix.strip("/"), settings)
