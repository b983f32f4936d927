"""Random queries, and among them the grammar that people rarely write: DISTINCT ON, GROUP BY ALL,
ORDER BY ALL, columns by position, chains of USING, tables with their schema."""

from collections.abc import Callable

from tests.fuzz.queries import Generator
from tests.fuzz.relations import Column, Relation, Select, under
from tests.fuzz.tables import SCHEMAS


class OddGenerator(Generator):
    """A generator that now and then draws an odd shape."""

    def _shape(self) -> Select:
        if not self._one_in(5):
            return super()._shape()
        shape: Callable[[], Select] = self._pick(
            [self.distinct_on, self.group_by_all, self.positional, self.using_chain, self.packed]
        )
        return shape()

    def ordered(self, made: Select) -> str:
        if self._one_in(4):
            limit = self._pick(["", " LIMIT 4", " LIMIT 2 OFFSET 1"])
            return f"{made.text} ORDER BY ALL{self._direction()}{limit}"
        return super().ordered(made)

    def _table(self, table: str, alias: str) -> Relation:
        made = super()._table(table, alias)
        schema = "main." if self._one_in(8) else ""
        return Relation(schema + made.text, made.columns)

    def distinct_on(self) -> Select:
        """The first row of each key, in a total order."""
        source = self._table(self._pick(list(SCHEMAS)), alias := self._name())
        keys = [self.key(source) for _ in range(self._pick([1, 1, 2]))]
        listed = [*keys, self.key(source), Column(f"{alias}.rid", "int")]
        made = self._select(listed, f"FROM {source.text}{self.where(source)}")
        on = ", ".join(key.text for key in keys)
        down = self._pick(["", " DESC"])
        text = f"SELECT DISTINCT ON ({on}) {made.text[len('SELECT ') :]}"
        inner = f"{text} ORDER BY {on}, {alias}.rid{down}"
        outer = self._name()
        return self._over(Relation(f"({inner}) AS {outer}", under(outer, made.columns)))

    def group_by_all(self) -> Select:
        """Keys are whatever is no aggregate, constants too."""
        source = self.source()
        keys = [self.key(source) for _ in range(self._pick([0, 1, 1, 2]))]
        constants = [Column("7", "int")] if self._one_in(3) else []
        listed = [*keys, *constants, self.aggregate(source), self.aggregate(source)]
        self.chance.shuffle(listed)
        having = f" HAVING {self.aggregate_condition(source)}" if self._one_in(3) else ""
        return self._select(listed, f"FROM {source.text}{self.where(source)} GROUP BY ALL{having}")

    def positional(self) -> Select:
        """Columns by their place in FROM."""
        source = self.source()
        placed = [Column(f"#{place}", c.kind) for place, c in enumerate(source.columns, 1)]
        whole = Relation(source.text, tuple(placed))
        listed = [self.expression(whole) for _ in range(self.chance.randrange(1, 4))]
        return self._select(listed, f"FROM {source.text}{self.where(source)}")

    def using_chain(self) -> Select:
        """Three tables, joined by two shared columns."""
        first, second, third = (self._name() for _ in range(3))
        kinds = [self._pick(["JOIN", "LEFT JOIN", "FULL JOIN"]) for _ in range(2)]
        text = (
            f"sales AS {first} {kinds[0]} items AS {second} USING (item) "
            f"{kinds[1]} shops AS {third} USING (shop)"
        )
        tables = (("sales", first), ("items", second), ("shops", third))
        columns = [c for table, alias in tables for c in self._table(table, alias).columns]
        own = [c for c in columns if not c.text.endswith((".item", ".shop"))]
        shared = [Column("item", "int"), Column("shop", "text")]
        return self._over(Relation(text, (*own, *shared)))

    def packed(self) -> Select:
        """Structs made in a subquery, and taken apart around it."""
        source = self.source()
        number = self._pick(source.of("int"))
        word = self._pick(source.of("text") or [Column("'a'", "text")])
        pack = Column(f"{{'x': {number.text}, 'y': {word.text}}}", "struct")
        made = self._select([pack, self.key(source)], f"FROM {source.text}{self.where(source)}")
        outer = self._name()
        return self._over(Relation(f"({made.text}) AS {outer}", under(outer, made.columns)))
