"""Sets of whole numbers, stored as intervals. Few long intervals take little memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class IntervalSet:
    """An immutable set of whole numbers.

    >>> found = IntervalSet.of([5, 1, 2, 3])
    >>> found.spans
    ((1, 4), (5, 6))
    >>> found.missing(7).spans
    ((0, 1), (4, 5), (6, 7))
    """

    spans: tuple[tuple[int, int], ...] = ()  # half-open, ascending, with gaps, none empty

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "IntervalSet":
        spans: list[list[int]] = []
        for number in sorted(numbers):
            if spans and number <= spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], number + 1)
            else:
                spans.append([number, number + 1])
        return cls(tuple((first, end) for first, end in spans))

    @classmethod
    def upto(cls, end: int) -> "IntervalSet":
        """Return the set of 0 … end - 1."""
        return cls(((0, end),)) if end > 0 else cls()

    def __contains__(self, number: int) -> bool:
        return any(first <= number < end for first, end in self.spans)

    def __iter__(self) -> Iterator[int]:
        for first, end in self.spans:
            yield from range(first, end)

    def __len__(self) -> int:
        return sum(end - first for first, end in self.spans)

    def covers(self, end: int) -> bool:
        """Return whether the set contains all of 0 … end - 1."""
        return end <= self.prefix()

    def prefix(self) -> int:
        """Return the smallest number, from 0 on, that is not in the set."""
        return self.spans[0][1] if self.spans and self.spans[0][0] == 0 else 0

    def missing(self, end: int) -> "IntervalSet":
        """Return those of 0 … end - 1 that are not in the set."""
        gaps, place = [], 0
        for first, after in self.spans:
            if first >= end:
                break
            if first > place:
                gaps.append((place, first))
            place = after
        if place < end:
            gaps.append((place, end))
        return IntervalSet(tuple(gaps))
