"""A store in memory that counts requests as S3 bills them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from caudal.store.memory import MemoryStore
from caudal.store.port import PAGE, Page

CLASSES = ("put", "get", "list", "delete")
_NAMES = 1_000  # that S3 gives in one answer
_EVERYTHING = 1 << 40

Bill = Counter[str]  # requests by class


class BilledStore(MemoryStore):
    """Counts what S3Store would ask: a listing reads all names of its level, or of its tree."""

    def __init__(self) -> None:
        super().__init__()
        self.bill: Bill = Counter()

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        self.bill["put"] += 1
        super().create(key, data, lasting=lasting)

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        self.bill["get"] += 1
        return super().read(key, offset, length)

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        whole = super().list(prefix, recursive=recursive, limit=_EVERYTHING)
        self.bill["list"] += max(1, -(-(len(whole.entries) + len(whole.folders)) // _NAMES))
        return super().list(prefix, recursive=recursive, after=after, limit=limit)

    def delete(self, key: str, *, lasting: bool = True) -> None:
        self.bill["delete"] += 1
        super().delete(key, lasting=lasting)

    def billed(self, act: Callable[[], object]) -> Bill:
        """Return what one act asks for."""
        before = self.bill.copy()
        act()
        return self.bill - before
