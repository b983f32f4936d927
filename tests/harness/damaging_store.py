"""A store in which one bit of one object is wrong from the beginning."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from caudal.store.port import PAGE, Page, Store


def flipped(data: bytes, bit: int) -> bytes:
    """The same bytes but for one bit, counted round and round."""
    place = bit % (8 * len(data))
    changed = bytearray(data)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def spread(bits: int, count: int) -> Iterator[int]:
    """So many bits out of all, at the most various places, the first bytes more than the rest."""
    yield from range(0, min(bits, 8 * 60), max(1, 8 * 60 * 2 // count) | 1)
    yield from range(0, bits, max(1, bits * 2 // count) | 1)


@dataclass
class DamagingStore(Store):
    """Flips a bit of the first object that is created under a key with `kind` in it."""

    store: Store
    kind: str = ""
    bit: int = 0
    key: str = ""  # what was damaged

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        if self.kind and self.kind in key and not self.key and isinstance(data, bytes):
            self.key, data = key, flipped(data, self.bit)
        self.store.create(key, data, lasting=lasting)

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.store.read(key, offset, length)

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        return self.store.list(prefix, recursive=recursive, after=after, limit=limit)

    def delete(self, key: str, *, lasting: bool = True) -> None:
        self.store.delete(key, lasting=lasting)

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        return self.store.replace(key, data, twin=twin)
