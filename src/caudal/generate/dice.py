"""Random numbers that are a pure function of seed, label and index.

Rules:

1. The number for one index never depends on another number. So any row of any file can be computed
   alone, in any order, and two files agree about the same film or book.
2. All arithmetic is on integers, so the bytes are the same on every machine and with every version
   of numpy. No floating-point function and no library generator is used.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

WEIGHTED_SLOTS = 4096
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Dice:
    """The source of all random numbers of one run. Labels name independent streams."""

    seed: int

    def bits(self, label: str, index: Ints) -> Bits:
        """Return 64 random bits for every index (splitmix64 at that position)."""
        z = index.astype(np.uint64)
        z *= _GOLDEN
        z += self._key(label)
        z ^= z >> np.uint64(30)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        return z

    def below(self, label: str, index: Ints, bound: int | Ints) -> Ints:
        """Return an integer in [0, bound) for every index. A bound is at most 2**32 - 1."""
        high = self.bits(label, index) >> np.uint64(32)
        high *= np.asarray(bound, dtype=np.uint64)
        high >>= np.uint64(32)
        return high.view(np.int64)

    def one_in(self, label: str, index: Ints, chances: int) -> Mask:
        """Return True for about one index in `chances`."""
        return np.equal(self.below(label, index, chances), 0)

    def percent(self, label: str, index: Ints, percentage: int) -> Mask:
        """Return True for about `percentage` percent of the indices."""
        return self.below(label, index, 100) < percentage

    def weighted(self, label: str, index: Ints, slots: Ints) -> Ints:
        """Return a choice from a table made by `weighted_slots`."""
        return slots[self.below(label, index, WEIGHTED_SLOTS)]

    def skewed(self, label: str, index: Ints, bound: int) -> Ints:
        """Return an integer in [0, bound) for every index. Low numbers are more likely."""
        bits = self.bits(label, index)
        product = (bits >> np.uint64(32)) * (bits & np.uint64(0xFFFFFFFF)) >> np.uint64(32)
        return (product * np.uint64(bound) >> np.uint64(32)).view(np.int64)

    def _key(self, label: str) -> np.uint64:
        digest = hashlib.blake2b(f"{self.seed}/{label}".encode(), digest_size=8).digest()
        return np.uint64(int.from_bytes(digest, "little"))


def weighted_slots(weights: Sequence[int]) -> Ints:
    """Return a lookup table in which the share of choice i equals the share of its weight."""
    ends = np.cumsum(np.asarray(weights, dtype=np.int64)) * WEIGHTED_SLOTS // sum(weights)
    return np.searchsorted(ends, np.arange(WEIGHTED_SLOTS), side="right").astype(np.int64)
