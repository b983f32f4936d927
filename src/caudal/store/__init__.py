"""Durable storage of immutable objects: a directory, S3 or memory behind one port."""

from caudal.store.directory import DirectoryStore
from caudal.store.memory import MemoryStore
from caudal.store.open_store import open_store
from caudal.store.port import Entry, Page, Store, entries
from caudal.store.probe import require_conditional_create
from caudal.store.s3 import S3Settings, S3Store

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
