"""Durable storage of immutable objects: a directory, S3 or memory behind one port."""

from typing import TYPE_CHECKING

from caudal.store import offering  # noqa: F401 - loads S3 on first use
from caudal.store.directory import DirectoryStore
from caudal.store.memory import MemoryStore
from caudal.store.open_store import open_store
from caudal.store.port import Entry, Page, Store, entries
from caudal.store.probe import require_conditional_create

if TYPE_CHECKING:
    from caudal.store.s3 import S3Store
    from caudal.store.s3_settings import S3Settings

__all__ = [
    "DirectoryStore",
    "Entry",
    "MemoryStore",
    "Page",
    "S3Settings",
    "S3Store",
    "Store",
    "entries",
    "open_store",
    "require_conditional_create",
]
