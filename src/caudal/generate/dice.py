"""Random numbers that are a pure function of seed, label and index.

Rules:
1. The draw for one index never depends on another draw, so any row of any file can be
   computed alone, in any order, and two files agree about the same film or book.
2. Only integer arithmetic, so the bytes are the same on every machine and every version
   of numpy. No floating-point function and no library generator takes part.
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
    """The source of every draw of one run; labels name independent streams."""

    seed: int

    def bits(self, label: str, index: Ints) -> Bits:
        """Sixty-four random bits for every index (splitmix64 at that position)."""
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
        """An integer in [0, bound) for every index; a bound is at most 2**32 - 1."""
        high = self.bits(label, index) >> np.uint64(32)
        high *= np.asarray(bound, dtype=np.uint64)
        high >>= np.uint64(32)
        return high.view(np.int64)

    def one_in(self, label: str, index: Ints, chances: int) -> Mask:
        """True for about one index in `chances`."""
        return np.equal(self.below(label, index, chances), 0)

    def percent(self, label: str, index: Ints, percentage: int) -> Mask:
        """True for about `percentage` indices of a hundred."""
        return self.below(label, index, 100) < percentage

    def weighted(self, label: str, index: Ints, slots: Ints) -> Ints:
        """A choice from a table made by `weighted_slots`."""
        return slots[self.below(label, index, WEIGHTED_SLOTS)]

    def skewed(self, label: str, index: Ints, bound: int) -> Ints:
        """An integer in [0, bound) that favours the low ones, as fame does."""
        bits = self.bits(label, index)
        product = (bits >> np.uint64(32)) * (bits & np.uint64(0xFFFFFFFF)) >> np.uint64(32)
        return (product * np.uint64(bound) >> np.uint64(32)).view(np.int64)

    def _key(self, label: str) -> np.uint64:
        digest = hashlib.blake2b(f"{self.seed}/{label}".encode(), digest_size=8).digest()
        return np.uint64(int.from_bytes(digest, "little"))


def weighted_slots(weights: Sequence[int]) -> Ints:
    """A lookup table in which choice i fills a share of the slots equal to its weight's share."""
    ends = np.cumsum(np.asarray(weights, dtype=np.int64)) * WEIGHTED_SLOTS // sum(weights)
    return np.searchsorted(ends, np.arange(WEIGHTED_SLOTS), side="right").astype(np.int64)
