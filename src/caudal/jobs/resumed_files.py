"""Which batches of a table a client that resumes must send, and when. Decides without I/O.

A gateway says of a batch that has arrived only the digest of its records. That of another header is
the same: the records of a file do not change when two names of its columns are swapped.

Rules
1. Of each file one batch that has arrived is sent again: the gateway compares all of it. If it is
   not the same, the file has changed.
2. Before that, nothing else of the file is sent. So a job never gets batches of two headers of a
   file, however often it is resumed, with one and with the other.
3. Clients send at most `IN_TRANSIT` batches at a time, in order. So behind that many batches that
   have not arrived there is none that has: what is there is new, and is compared with nothing.
4. What has waited until then is sent in order, one at a time, and what comes meanwhile after it. If
   something overtook it and the client were killed, rule 3 would not hold for the next client.

Thread-safe.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
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
    _waiting: dict[str, dict[int, Item]] = field(default_factory=dict)  # by file and number
    _missing: set[int] = field(default_factory=set)  # numbers
    _is_behind: bool = False  # rule 3
    _is_new: bool = False  # and nothing waits any more (rule 4)
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
            return _in_order(self._waiting.pop(batch.file, {}))

    def missing(self, batch: BatchHeader, item: Item) -> Iterable[Item]:
        """Take a batch that has not arrived; return what to send now, each before the next one."""
        with self._lock:
            if self._is_new or batch.file in self._same:
                return [item]
            self._waiting.setdefault(batch.file, {})[batch.number] = item
            self._missing.add(batch.number)
            if self._is_behind or not self._ends_with_new_ones(batch.number):
                return []
            self._is_behind = True
            return self._until_none_waits()

    def rest(self) -> list[Item]:
        """Return what still waits, when the table has no further batches."""
        with self._lock:
            return self._taken()

    def _until_none_waits(self) -> Iterator[Item]:
        while items := self._more():
            yield from items

    def _more(self) -> list[Item]:
        with self._lock:
            items = self._taken()
            self._is_new = not items
            return items

    def _taken(self) -> list[Item]:
        numbered = {key: one for some in self._waiting.values() for key, one in some.items()}
        self._waiting = {}
        return _in_order(numbered)

    def _ends_with_new_ones(self, number: int) -> bool:
        """Return whether so many batches in a row are missing, with this one among them."""
        first = last = number
        while first - 1 in self._missing:
            first -= 1
        while last + 1 in self._missing:
            last += 1
        return last - first + 1 >= IN_TRANSIT


def _in_order(numbered: Mapping[int, Item]) -> list[Item]:
    return [numbered[number] for number in sorted(numbered)]
