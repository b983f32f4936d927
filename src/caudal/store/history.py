"""A history in a store: numbered documents, each created once and never changed.

The versions of datasets, the event versions of series and the manifests of a consolidation are such
histories. What they share:

1. Number n + 1 is created by somebody who read number n, and is decided from what n says. A create
   takes a number for exactly one writer. Who loses reads the winner's document and decides again.
   So a history is serial, without a lock and without a clock.
2. A document that can be read may not be durable yet: its writer may be about to sync it, or may
   have died before. Who writes something elsewhere that relies on it, or reports it as done, first
   creates it again with the same bytes, which makes it durable (rule 2 of the port). Otherwise a
   power cut could remove number n and leave what was built on it.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from caudal.errors import NotFoundError
from caudal.store.port import Store

Document = TypeVar("Document")


class History(Generic[Document]):
    """Numbered documents. `decode` raises FormatError for bytes that are not those of a number."""

    def __init__(
        self, store: Store, key: Callable[[int], str], decode: Callable[[bytes, int], Document]
    ) -> None:
        self._store = store
        self._key = key
        self._decode = decode
        self._settled = -1

    def read(self, number: int) -> Document:
        """Return one document. Raises NotFoundError."""
        return self._decode(self._store.read(self._key(number)), number)

    def after(self, number: int) -> list[Document]:
        """Return the documents that follow a number."""
        found: list[Document] = []
        while True:
            try:
                found.append(self.read(number + 1 + len(found)))
            except NotFoundError:
                return found

    def create(self, number: int, data: bytes) -> None:
        """Create a document. Raises AlreadyExistsError if somebody else took the number."""
        self._store.create(self._key(number), data)
        self._settled = max(self._settled, number)

    def settle(self, number: int) -> None:
        """Make a document durable (rule 2). Raises NotFoundError."""
        if number > self._settled:
            self.create(number, self._store.read(self._key(number)))
