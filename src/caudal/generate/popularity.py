"""The number of reviews or ratings per title: a Zipf-like distribution, in closed form.

Titles are ranked by fame and divided into strata. A stratum of n titles holds t of the draws, and
draw q of a stratum belongs to its title q * n // t. So the count of a title is known without
counting, counts differ by at most one within a stratum, and no table grows with the number of
titles. A shuffle spreads the ranks over the title numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caudal.generate.dice import Ints

SHARE_UNIT = 100_000
"""The unit of the shares of strata: one hundred-thousandth."""


@dataclass(frozen=True)
class Shuffle:
    """A bijection of [0, size) that moves neighbours far apart. Exact for a size below 2**31."""

    size: int

    @property
    def multiplier(self) -> int:
        """A number near the golden section of the size, and coprime to it."""
        candidate = max(1, self.size * 618_033_989 // 10**9)
        while math.gcd(candidate, self.size) != 1:
            candidate += 1
        return candidate

    def forward(self, index: Ints) -> Ints:
        """Return the position to which each index moves."""
        return index * self.multiplier % self.size

    def inverse(self, index: Ints) -> Ints:
        """Return the position from which each index came."""
        inverse = pow(self.multiplier, -1, self.size) if self.size > 1 else 0
        return index * inverse % self.size


@dataclass(frozen=True)
class Stratum:
    """A share of the titles, and the share of the draws that they get together."""

    titles: int
    draws: int


@dataclass(frozen=True)
class Popularity:
    """A mapping from draw numbers to ranks of titles. Rank 0 is the most famous."""

    titles: int
    draws: int
    strata: Sequence[Stratum]

    def ranks(self, draw: Ints) -> Ints:
        """Return the rank of the title to which every draw in [0, draws) belongs."""
        first_rank, first_draw = self._starts()
        stratum = np.searchsorted(first_draw[1:-1], draw, side="right")
        titles = np.diff(first_rank)[stratum]
        draws = np.maximum(np.diff(first_draw), 1)[stratum]
        offset = (draw - first_draw[stratum]) * titles // draws
        return np.minimum(first_rank[stratum] + offset, self.titles - 1)

    def famous(self, strata: int) -> int:
        """Return the number of titles in the first strata."""
        return min(self.titles, int(self._starts()[0][strata]))

    def _starts(self) -> tuple[Ints, Ints]:
        """Return the first rank and the first draw of each stratum, and one past the last.

        Every stratum has at least one title. The last one gets the remainder of the rounding.
        """
        rank, draw, ranks, draws = 0, 0, [0], [0]
        for stratum in self.strata[:-1]:
            rank += max(1, self.titles * stratum.titles // SHARE_UNIT)
            draw += self.draws * stratum.draws // SHARE_UNIT
            ranks.append(rank)
            draws.append(draw)
        ranks.append(max(rank + 1, self.titles))
        draws.append(self.draws)
        return np.array(ranks, dtype=np.int64), np.array(draws, dtype=np.int64)
