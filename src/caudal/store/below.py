"""The part of a store below a prefix, as a store of its own."""

from dataclasses import replace as changed
from pathlib import Path

from caudal.errors import UsageError
from caudal.store import keys
from caudal.store.port import PAGE, Entry, Page, Store


class StoreBelow(Store):
    """The objects below a prefix such as `a/b/`; keys are counted from there."""

    def __init__(self, inner: Store, prefix: str) -> None:
        if not prefix.endswith("/"):
            raise UsageError(f"{prefix!r} is no prefix of a store: it must end with /")
        keys.check_key(prefix[:-1])
        self.parallel_requests = inner.parallel_requests
        self.inner = inner
        self._prefix = prefix

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        """See the port."""
        self.inner.create(self._whole(key), data, lasting=lasting)

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        """See the port."""
        return self.inner.read(self._whole(key), offset, length)

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        """See the port."""
        keys.check_prefix(prefix)
        behind = f"{self._prefix}{after}" if after else ""
        page = self.inner.list(
            f"{self._prefix}{prefix}", recursive=recursive, after=behind, limit=limit
        )
        return Page(
            tuple(map(self._short_entry, page.entries)),
            tuple(map(self._short, page.folders)),
            None if page.last is None else self._short(page.last),
        )

    def delete(self, key: str, *, lasting: bool = True) -> None:
        """See the port."""
        self.inner.delete(self._whole(key), lasting=lasting)

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        """See the port."""
        whole_twin = None if twin is None else self._whole(twin)
        return self.inner.replace(self._whole(key), data, twin=whole_twin)

    def sweep(self, older_than_seconds: float) -> int:
        """Do nothing: what interrupted writes left behind belongs to the whole store."""
        return 0

    def time(self) -> float | None:
        """See the port."""
        return self.inner.time()

    def _whole(self, key: str) -> str:
        keys.check_key(key)
        is_own = key.startswith(keys.OWN)  # of the store, wherever it begins
        return key if is_own else self._prefix + key

    def _short(self, key: str) -> str:
        return key.removeprefix(self._prefix)

    def _short_entry(self, entry: Entry) -> Entry:
        return changed(entry, key=self._short(entry.key))
