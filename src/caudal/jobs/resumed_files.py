"""Which batches of a table a client that resumes must send, and when. Decides without I/O.

A gateway says of a batch that has arrived only the digest of its records. That of another header is
the same: the records of a file do not change when two names of its columns are swapped.

Rules
1. Of each file one batch that has arrived is sent again: the gateway compares all of it. If it is
   not the same, the file has changed.
2. Before that, nothing else of the file is sent. So a job never gets batches of two headers of a
   file, however often it is resumed, with one and with the other.
3. Clients send at most `IN_TRANSIT` batches at a time, in order. So behind that many batches that
   have not arrived there is none that has: what is there is new, and waits for nothing.

Thread-safe.
"""

import threading
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from caudal.formats.batch import BatchHeader

IN_TRANSIT = 4  # batches of a table
Item = TypeVar("Item")


@dataclass
class ResumedFiles(Generic[Item]):
    """The files of one table. An item is what is sent later; each is given back once."""

    _chosen: set[str] = field(default_factory=set)  # files of which a batch is sent again
    _same: set[str] = field(default_factory=set)  # files that were compared
    _waiting: dict[str, list[Item]] = field(default_factory=dict)  # by file
    _missing: set[int] = field(default_factory=set)  # numbers
    _is_new: bool = False  # rule 3
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def must_compare(self, batch: BatchHeader) -> bool:
        """Return whether a batch that has arrived must be sent again: once for each file."""
        with self._lock:
            if batch.file in self._chosen:
                return False
            self._chosen.add(batch.file)
            return True

    def compared(self, batch: BatchHeader) -> list[Item]:
        """Note that a batch is the same as the one that has arrived; return what to send now."""
        with self._lock:
            self._same.add(batch.file)
            return self._waiting.pop(batch.file, [])

    def missing(self, batch: BatchHeader, item: Item) -> list[Item]:
        """Take a batch that has not arrived; return what to send now."""
        with self._lock:
            if self._is_new or batch.file in self._same:
                return [item]
            self._waiting.setdefault(batch.file, []).append(item)
            self._missing.add(batch.number)
            if not self._ends_with_new_ones(batch.number):
                return []
            self._is_new = True
            return self._taken()

    def rest(self) -> list[Item]:
        """Return what still waits, when the table has no further batches."""
        with self._lock:
            return self._taken()

    def _taken(self) -> list[Item]:
        items = [one for waiting in self._waiting.values() for one in waiting]
        self._waiting = {}
        return items

    def _ends_with_new_ones(self, number: int) -> bool:
        """Return whether so many batches in a row are missing, with this one among them."""
        first = last = number
        while first - 1 in self._missing:
            first -= 1
        while last + 1 in self._missing:
            last += 1
        return last - first + 1 >= IN_TRANSIT
