"""Which effects the code has, by the path of calls that leads to them, and where it was killed.

A point is an effect of one kind of actor, reached through one path of Caudal's own functions, with
the moment before or after it. The points are those that runs really came by: nobody lists them.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Literal

from caudal import jobs

Side = Literal["before", "after"]
SIDES: tuple[Side, Side] = ("before", "after")
_OURS = jobs.__file__.rpartition("/jobs/")[0]
# By the identities of code objects, since hashing one takes long; they are kept, so that no other
# object ever has the same identity.
_names: dict[tuple[str, str, tuple[int, ...]], tuple[str, list[CodeType]]] = {}


def effect_name(actor: str, operation: str) -> str:
    """`worker: handle > _make > merge_group > end: read tables`, for the calls above the caller."""
    frame: FrameType | None = sys._getframe(2)
    codes = []
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    key = actor, operation, tuple(map(id, codes))
    known = _names.get(key)
    if known is None:
        known = _names[key] = f"{actor}: {_path(codes)}: {operation}", codes
    return known[0]


def _path(codes: Iterable[CodeType]) -> str:
    ours = [_name(one) for one in codes if one.co_filename.startswith(_OURS)]
    return " > ".join(name for name in reversed(ours) if not name.startswith("<"))


def _name(code: CodeType) -> str:
    """A function's name; a lambda's is that of the function that made it."""
    if code.co_name != "<lambda>":
        return code.co_name
    return code.co_qualname.rpartition(".<locals>")[0].rpartition(".")[2] or code.co_name


@dataclass(frozen=True)
class Point:
    """A moment at which a process may be killed."""

    effect: str
    side: Side

    def __str__(self) -> str:
        return f"{self.side} {self.effect}"


@dataclass
class Coverage:
    """Which effects were seen, and at which of them a process was killed."""

    effects: Counter[str] = field(default_factory=Counter)
    crashes: Counter[Point] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Coverage") -> None:
        self.effects.update(other.effects)
        self.crashes.update(other.crashes)
        self.faults.update(other.faults)

    def points(self) -> list[Point]:
        return [Point(effect, side) for effect in sorted(self.effects) for side in SIDES]

    def unreached(self) -> list[Point]:
        return [point for point in self.points() if point not in self.crashes]
