"""Results where they lie in the store."""

from collections.abc import Iterator
from dataclasses import dataclass

from caudal.core.tasks import Task
from caudal.errors import NotFoundError
from caudal.formats import frame, outputs
from caudal.store.port import Store
from caudal.tasks.life import Life


@dataclass(frozen=True)
class StoredResult:
    """A result where it lies: small to hold, and read piece by piece."""

    index: outputs.Result
    body: int  # where the stream of rows begins
    read: frame.Read

    def pieces(self, first: int, end: int, size: int = 4 << 20) -> Iterator[bytes]:
        """The bytes of the object from `first` to `end`."""
        for offset in range(first, end, size):
            yield self.read(offset, min(size, end - offset))

    @property
    def end(self) -> int:
        return self.body + self.index.rows.offset + self.index.rows.length


def stored_result(store: Store, life: Life, query: str) -> StoredResult | None:
    """The result of a query; None if there is none (yet)."""
    key = life.keys.output(Task("finish", query))
    try:
        index, body = outputs.describe_result(lambda *at: store.read(key, *at), key)
    except NotFoundError:
        return None
    return StoredResult(index, body, lambda *at: store.read(key, *at))
