"""Random queries over columns of every type: grouped, compared, joined, ordered, nested."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.fuzz.tables import TEXTS

Option = TypeVar("Option")
COLUMNS = [f"c{place}" for place in range(len(TEXTS))]


@dataclass
class KindGenerator:
    """Draws queries from `chance`, which decides everything."""

    chance: random.Random

    def queries(self) -> list[tuple[str, bool]]:
        """One query, or two that may share stages; each with whether its rows are ordered."""
        return [self._query() for _ in range(self.chance.choice([1, 1, 2]))]

    def _query(self) -> tuple[str, bool]:
        shapes: list[Callable[[], str]] = [
            self.plain, self.grouped, self.grouped, self.total, self.distinct, self.joined,
            self.selected, self.combined, self.windowed, self.nested, self.gathered,
        ]  # fmt: skip
        if self.chance.randrange(6) == 0:
            return self.ordered(), True
        return self.chance.choice(shapes)(), False

    def plain(self) -> str:
        listed = ", ".join(self._shown(f"t.{self._column()}", n) for n in range(3))
        return f"SELECT t.rid, {listed} FROM {self._table()} AS t{self._where()}"

    def grouped(self) -> str:
        keys = ", ".join(f"t.{self._column()} AS k{n}" for n in range(self._pick([1, 1, 2])))
        calls = ", ".join(f"{self._call()} AS a{n}" for n in range(2))
        return f"SELECT {keys}, {calls} FROM {self._table()} AS t{self._where()} GROUP BY ALL"

    def total(self) -> str:
        calls = ", ".join(f"{self._call()} AS a{n}" for n in range(3))
        return f"SELECT {calls} FROM {self._table()} AS t{self._where()}"

    def distinct(self) -> str:
        listed = ", ".join(f"t.{self._column()} AS v{n}" for n in range(2))
        return f"SELECT DISTINCT {listed} FROM {self._table()} AS t"

    def joined(self) -> str:
        column, kind = self._column(), self._pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        listed = f"t.rid AS i, u.rid AS j, u.{self._column()} AS v"
        on = f"t.{column} = u.{column}" + self._pick(["", " AND t.rid < u.rid"])
        return f"SELECT {listed} FROM kinds AS t {kind} others AS u ON {on}"

    def selected(self) -> str:
        c = self._column()
        condition = self._pick(
            [
                f"t.{c} IN (SELECT {c} FROM others WHERE {c} IS NOT NULL)",
                f"NOT EXISTS (SELECT 1 FROM others AS u WHERE u.{c} = t.{c})",
                f"t.{c} = (SELECT max({c}) FROM others)",
                f"t.{c} >= (SELECT min({c}) FROM others)",
            ]
        )
        return f"SELECT t.rid, t.{self._column()} AS v FROM kinds AS t WHERE {condition}"

    def combined(self) -> str:
        c, operation = self._column(), self._pick(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        return f"SELECT {c} AS v FROM kinds {operation} SELECT {c} AS v FROM others"

    def windowed(self) -> str:
        call = self._pick(["lag({})", "max({})", "first_value({})"]).format(f"t.{self._column()}")
        over = self._pick(["", f"PARTITION BY t.{self._column()} "])
        return f"SELECT t.rid, {call} OVER ({over}ORDER BY t.rid) AS v FROM kinds AS t"

    def nested(self) -> str:
        one, two = f"t.{self._column()}", f"t.{self._column()}"
        made = self._pick(
            [f"[{one}, NULL]", f"{{'x': {one}, 'y y': [{two}]}}", f"row({one}, {two})",
             f"map([t.rid], [{one}])", f"[{{'a': {one}}}]"]
        )  # fmt: skip
        outer = self._pick(["v", "CAST(v AS VARCHAR) AS v", "typeof(v) AS v", "min(v) AS v"])
        return f"SELECT {outer} FROM (SELECT {made} AS v FROM {self._table()} AS t)"

    def gathered(self) -> str:
        call = self._pick(
            ["list({} ORDER BY t.rid)", "first({} ORDER BY t.rid)", "arg_max({}, t.rid)",
             "string_agg(CAST({} AS VARCHAR), ',' ORDER BY t.rid)"]
        )  # fmt: skip
        key = self._pick(["t.rid % 3", f"t.{self._column()}"])
        made = call.format(f"t.{self._column()}")
        return f"SELECT {key} AS k, {made} AS v FROM {self._table()} AS t GROUP BY 1"

    def ordered(self) -> str:
        c, down = self._column(), self._pick(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
        limit = self._pick(["", " LIMIT 3", " LIMIT 4 OFFSET 2"])
        return f"SELECT rid, {c} AS v FROM {self._table()} ORDER BY {c}{down}, rid{limit}"

    def _call(self) -> str:
        column = f"t.{self._column()}"
        return self._pick(
            ["count(*)", f"count({column})", f"count(DISTINCT {column})", f"min({column})",
             f"max({column})", f"typeof(max({column}))", f"CAST(max({column}) AS VARCHAR)"]
        )  # fmt: skip

    def _shown(self, text: str, place: int) -> str:
        return self._pick([text, f"CAST({text} AS VARCHAR)", f"typeof({text})"]) + f" AS v{place}"

    def _where(self) -> str:
        c = self._column()
        return self._pick(["", "", " WHERE t.rid % 2 = 0", f" WHERE t.{c} IS NOT NULL"])

    def _table(self) -> str:
        return self._pick(["kinds", "others"])

    def _column(self) -> str:
        return self._pick(COLUMNS)

    def _pick(self, options: Sequence[Option]) -> Option:
        return options[self.chance.randrange(len(options))]
