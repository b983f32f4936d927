"""Who gets how many: a Zipf-like share of reviews or ratings per title, in closed form.

Theory of operation. Titles are ranked by fame and cut into strata; a stratum of n titles
holds t of the draws, and draw q of a stratum belongs to its title q * n // t. So a title's
count is known without counting, differs by at most one within a stratum, and no table
grows with the number of titles. A shuffle spreads ranks over title numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caudal.generate.dice import Ints

SHARE_UNIT = 100_000
"""Shares of strata are counted in hundred-thousandths."""


@dataclass(frozen=True)
class Shuffle:
    """A bijection of [0, size) that sends neighbours far apart; exact for size below 2**31."""

    size: int

    @property
    def multiplier(self) -> int:
        """About the golden section of the size, and coprime to it."""
        candidate = max(1, self.size * 618_033_989 // 10**9)
        while math.gcd(candidate, self.size) != 1:
            candidate += 1
        return candidate

    def forward(self, index: Ints) -> Ints:
        """Where each index goes."""
        return index * self.multiplier % self.size

    def inverse(self, index: Ints) -> Ints:
        """Where each index came from."""
        inverse = pow(self.multiplier, -1, self.size) if self.size > 1 else 0
        return index * inverse % self.size


@dataclass(frozen=True)
class Stratum:
    """Share of the titles and share of the draws they get together."""

    titles: int
    draws: int


@dataclass(frozen=True)
class Popularity:
    """Maps draw numbers to ranks of titles; rank 0 is the most famous."""

    titles: int
    draws: int
    strata: Sequence[Stratum]

    def ranks(self, draw: Ints) -> Ints:
        """The rank of the title that every draw in [0, draws) belongs to."""
        first_rank, first_draw = self._starts()
        stratum = np.searchsorted(first_draw[1:-1], draw, side="right")
        titles = np.diff(first_rank)[stratum]
        draws = np.maximum(np.diff(first_draw), 1)[stratum]
        offset = (draw - first_draw[stratum]) * titles // draws
        return np.minimum(first_rank[stratum] + offset, self.titles - 1)

    def famous(self, strata: int) -> int:
        """How many titles the first strata hold."""
        return min(self.titles, int(self._starts()[0][strata]))

    def _starts(self) -> tuple[Ints, Ints]:
        """First rank and first draw of each stratum, and one past the last.

        Every stratum has a title, and the last one takes what rounding leaves.
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
