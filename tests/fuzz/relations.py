"""What random queries are made of: relations, and columns with the kinds of their values."""

from collections.abc import Sequence
from dataclasses import dataclass

# Kinds that may be compared, grouped and ordered.
USABLE = (
    "int", "float", "text", "date", "bool", "decimal", "texts", "ints", "moment", "uint", "struct",
    "interval", "blob", "wide",
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    text: str
    kind: str  # int, float, text, date, bool, decimal, texts, ints; inexact: only to be listed
    unique: bool = False


@dataclass(frozen=True)
class Relation:
    """Something that can stand in FROM, and its columns as they are called outside."""

    text: str
    columns: tuple[Column, ...]

    def of(self, *kinds: str) -> list[Column]:
        return [column for column in self.columns if column.kind in kinds]


@dataclass(frozen=True)
class Select:
    """A query with named columns."""

    text: str
    columns: tuple[Column, ...]  # by bare name


def under(alias: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple(Column(f"{alias}.{c.text}", c.kind) for c in columns if c.kind in USABLE)
