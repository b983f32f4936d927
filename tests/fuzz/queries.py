"""Random queries with determinate answers.

Floats of the tables are multiples of 1/8 below 2^20, so their sums and products are exact in any
order; quotients are rounded before they are compared, ordered or grouped; deviations only ever
stand in the final list. Every LIMIT follows an ORDER BY of all columns, and every window and list
aggregate has a total order.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.fuzz.relations import USABLE, Column, Relation, Select, under
from tests.fuzz.tables import SCHEMAS

Option = TypeVar("Option")

_KINDS = {
    "INTEGER": "int", "BIGINT": "int", "SMALLINT": "int", "HUGEINT": "int", "VARCHAR": "text",
    "DOUBLE": "float", "DATE": "date", "BOOLEAN": "bool", "VARCHAR[]": "texts",
    "INTEGER[]": "ints", "UTINYINT": "uint", "UBIGINT": "uint", "UHUGEINT": "wide",
    "STRUCT(x INTEGER, y VARCHAR)": "struct", "INTERVAL": "interval", "BLOB": "blob",
}  # fmt: skip

# DuckDB compares a UHUGEINT with a signed number as BIGINT, which most of its values are not:
# whether such a query fails depends on the order of its joins. So `wide` meets unsigned ones only.
_JOINED = ("int", "text", "date", "float", "decimal", "uint", "struct", "interval", "blob", "wide")
_MIXED = ({"int", "float"}, {"int", "decimal"}, {"int", "uint"}, {"uint", "wide"})


@dataclass
class Generator:
    """Draws queries from `chance`, which decides everything."""

    chance: random.Random
    _names: int = field(default=0)

    def queries(self) -> list[tuple[str, bool]]:
        """Queries to be planned together, each with whether its rows come in one order only.

        The later ones are close to the first, so that they share some of its stages.
        """
        made = self._shape()
        inexact = any(column.kind == "inexact" for column in made.columns)
        ordered = not inexact and not self._one_in(3)
        first = (self.ordered(made) if ordered else made.text, ordered)
        column = self._pick(made.columns).text
        close = [
            (made.text, False),
            (f"SELECT z.{column} AS only FROM ({made.text}) AS z", False),
            (f"SELECT count(*) AS n FROM ({made.text}) AS z", False),
        ]
        return [first, *self.chance.sample(close, self._pick([0, 0, 1, 2]))]

    def _shape(self) -> Select:
        shape: Callable[[], Select] = self._pick(
            [
                self.plain, self.plain, self.grouped, self.grouped, self.grouped, self.total,
                self.total, self.distinct, self.windowed, self.combined, self.combined,
                self.common, self.correlated, self.recursive, self.unnested, self.over_subquery,
                self.over_subquery, self.using, self.cut_inside, self.stacked, self.starred,
                self.by_alias, self.constant_beside, self.read_twice, self.ordered_inside,
                self.bracketed, self.with_lambda,
            ]
        )  # fmt: skip
        return shape()

    def ordered(self, made: Select) -> str:
        places = list(range(1, len(made.columns) + 1))
        self.chance.shuffle(places)
        order = ", ".join(f"{place}{self._direction()}" for place in places)
        limit = self._pick(["", "", " LIMIT 3", " LIMIT 5 OFFSET 2", " LIMIT 1", " OFFSET 1"])
        return f"{made.text} ORDER BY {order}{limit}"

    def plain(self) -> Select:
        source = self.source()
        listed = [self.expression(source) for _ in range(self.chance.randrange(1, 4))]
        return self._select(listed, f"FROM {source.text}{self.where(source)}")

    def distinct(self) -> Select:
        source = self.source()
        listed = [self.key(source) for _ in range(self.chance.randrange(1, 3))]
        made = self._select(listed, f"FROM {source.text}{self.where(source)}")
        return Select("SELECT DISTINCT" + made.text[len("SELECT") :], made.columns)

    def grouped(self) -> Select:
        source = self.source()
        keys = [self.key(source) for _ in range(self.chance.randrange(1, 3))]
        calls = [self.aggregate(source) for _ in range(self.chance.randrange(0, 4))]
        having = f" HAVING {self.aggregate_condition(source)}" if self._one_in(3) else ""
        by = self._pick(
            [", ".join(key.text for key in keys), ", ".join(str(n + 1) for n in range(len(keys)))]
        )
        if self._one_in(6) and calls:
            by = "ALL"
        tail = f"FROM {source.text}{self.where(source)} GROUP BY {by}{having}"
        return self._select([*keys, *calls], tail)

    def total(self) -> Select:
        source = self.source()
        calls = [self.aggregate(source) for _ in range(self.chance.randrange(1, 4))]
        having = f" HAVING {self.aggregate_condition(source)}" if self._one_in(5) else ""
        return self._select(calls, f"FROM {source.text}{self.where(source)}{having}")

    def windowed(self) -> Select:
        alias, table = self._name(), self._pick(list(SCHEMAS))
        source = self._table(table, alias)
        by = self.key(source).text
        order = f"ORDER BY {alias}.rid"
        number = self._pick(source.of("int")).text
        call = self._pick(
            [
                f"row_number() OVER (PARTITION BY {by} {order})",
                f"sum({number}) OVER (PARTITION BY {by} {order})",
                f"count(*) OVER (PARTITION BY {by})",
                f"max({number}) OVER ({order} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
                f"lag({number}) OVER (PARTITION BY {by} {order})",
                f"rank() OVER ({order})",
            ]
        )
        kind = "int"
        listed = [Column(f"{alias}.rid", "int"), self.expression(source), Column(call, kind)]
        tail = f"FROM {source.text}{self.where(source)}"
        if self._one_in(3):
            tail += f" QUALIFY row_number() OVER (PARTITION BY {by} {order} DESC) <= 2"
        made = self._select(listed, tail)
        if self._one_in(2):
            return made
        outer = self._name()
        return self._over(Relation(f"({made.text}) AS {outer}", under(outer, made.columns)))

    def combined(self) -> Select:
        kinds = [self._pick(["int", "text", "date", "float"]) for _ in range(2)]
        word = self._pick(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
        left, right = (self._of_kinds(kinds) for _ in range(2))
        text = f"{left.text} {word} {right.text}"
        if self._one_in(2):
            return Select(text, left.columns)
        inside = Relation(f"({text}) AS {(alias := self._name())}", under(alias, left.columns))
        return self._over(inside)

    def common(self) -> Select:
        inner = self._pick([self.plain, self.grouped, self.distinct, self.total])()
        name = self._name()
        columns = tuple(c for c in inner.columns if c.kind in USABLE)
        if not columns:
            return inner
        one = Relation(f"{name} AS {(first := self._name())}", under(first, columns))
        if self._one_in(2):
            outer = self._over(one)
        else:
            two = Relation(f"{name} AS {(second := self._name())}", under(second, columns))
            key = self._pick(range(len(columns)))
            on = f"{one.columns[key].text} = {two.columns[key].text}"
            both = Relation(f"{one.text} JOIN {two.text} ON {on}", one.columns + two.columns)
            outer = self._over(both)
        return Select(f"WITH {name} AS ({inner.text}) {outer.text}", outer.columns)

    def over_subquery(self) -> Select:
        inner = self._pick([self.plain, self.grouped, self.distinct, self.unnested])()
        columns = tuple(c for c in inner.columns if c.kind in USABLE)
        if not columns:
            return inner
        alias = self._name()
        return self._over(Relation(f"({inner.text}) AS {alias}", under(alias, columns)))

    def correlated(self) -> Select:
        alias, inner = self._name(), self._name()
        call = self._pick(
            [
                f"(SELECT count(*) FROM items {inner} WHERE {inner}.item = {alias}.item)",
                f"(SELECT max(weight) FROM items {inner} WHERE {inner}.item < {alias}.item)",
                f"(SELECT sum({inner}.size) FROM shops {inner} WHERE {inner}.shop = {alias}.shop)",
                f"EXISTS (SELECT 1 FROM shops {inner} WHERE {inner}.shop = {alias}.shop)",
            ]
        )
        kind = "bool" if call.startswith("EXISTS") else "float" if "weight" in call else "int"
        source = self._table("sales", alias)
        listed = [Column(f"{alias}.rid", "int"), Column(call, kind)]
        return self._select(listed, f"FROM {source.text}{self.where(source)}")

    def recursive(self) -> Select:
        name = self._name()
        text = (
            f"WITH RECURSIVE {name} AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM {name} WHERE "
            f"n < (SELECT count(*) FROM sales)) SELECT n AS a1, "
            f"(SELECT max(size) FROM shops) AS a2 FROM {name}"
        )
        return Select(text, (Column("a1", "int"), Column("a2", "int")))

    def unnested(self) -> Select:
        alias, value = self._name(), self._name()
        table, column, kind = self._pick([("sales", "tags", "text"), ("items", "codes", "int")])
        source = self._table(table, alias)
        if self._one_in(2):
            listed = [
                Column(f"unnest({alias}.{column})", kind),
                self.expression(source),
            ]
            return self._select(listed, f"FROM {source.text}{self.where(source)}")
        more = Column(f"{value}.v", kind)
        both = Relation(
            f"{source.text}, unnest({alias}.{column}) AS {value}(v)", (*source.columns, more)
        )
        return self._over(both)

    def using(self) -> Select:
        """USING: the shared column is called without a table."""
        kind = self._pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN"])
        key, other = self._pick([("item", "items"), ("shop", "shops")])
        left, right = self._name(), self._name()
        columns = [c for c in self._table("sales", left).columns if not c.text.endswith(f".{key}")]
        if kind != "SEMI JOIN":
            more = self._table(other, right).columns
            columns += [c for c in more if not c.text.endswith(f".{key}")]
        columns.append(Column(key, "int" if key == "item" else "text"))
        text = f"sales AS {left} {kind} {other} AS {right} USING ({key})"
        return self._over(Relation(text, tuple(columns)))

    def cut_inside(self) -> Select:
        """A subquery with ORDER BY and LIMIT, joined or filtered further."""
        inner = self._pick([self.plain, self.grouped, self.distinct])()
        columns = tuple(c for c in inner.columns if c.kind in USABLE)
        if len(columns) != len(inner.columns):
            return inner
        order = ", ".join(str(place) for place in range(1, len(columns) + 1))
        alias = self._name()
        text = f"({inner.text} ORDER BY {order} LIMIT {self._pick([1, 4, 9])}) AS {alias}"
        made = Relation(text, under(alias, columns))
        if self._one_in(2):
            return self._over(made)
        other = self._table(self._pick(list(SCHEMAS)), self._name())
        kind = self._pick(["CROSS JOIN", "JOIN", "LEFT JOIN"])
        pairs = [(a, b) for a in made.columns for b in other.columns if a.kind == b.kind == "int"]
        on = ""
        if kind != "CROSS JOIN":
            on = " ON " + (" = ".join(c.text for c in self._pick(pairs)) if pairs else "TRUE")
        sides = [made, other] if self._one_in(2) else [other, made]
        both = Relation(
            f"{sides[0].text} {kind} {sides[1].text}{on}", sides[0].columns + sides[1].columns
        )
        return self._over(both)

    def constant_beside(self) -> Select:
        """Constants, and what is not null for nulls, on a side that an outer join null-extends."""
        item = self._pick(["item", "item", "count(*) AS item"])
        constants = "1 AS i, 'x' AS t, DATE '2020-01-05' AS d, item IS NULL AS b"
        kinds = {"item": "int", "i": "int", "t": "text", "d": "date", "b": "bool"}
        side = self._pick(
            [
                "SELECT item FROM items", "SELECT item FROM items GROUP BY item",
                "SELECT item FROM (VALUES (1), (2)) AS v(item)", "SELECT 2 AS item",
                "SELECT item FROM (SELECT item, row_number() OVER (PARTITION BY item ORDER BY rid) "
                "AS r FROM items) WHERE r = 1",
                "SELECT s.item FROM sales s JOIN items USING (item)",
                "SELECT item FROM items ORDER BY item, rid LIMIT 3",
            ]
        )  # fmt: skip
        made, other = self._name(), self._name()
        sides = [
            f"(SELECT *, {constants} FROM ({side})) AS {made}",
            f"(SELECT {item} FROM {self._pick(['sales', 'items'])}) AS {other}",
        ]
        self.chance.shuffle(sides)
        kind = self._pick(["LEFT", "RIGHT", "FULL"])
        on = self._pick([f"{made}.item = {other}.item", f"{made}.item > {other}.item"])
        columns = [Column(f"{made}.{name}", kind) for name, kind in kinds.items()]
        columns.append(Column(f"{other}.item", "int"))
        return self._over(Relation(f"{sides[0]} {kind} JOIN {sides[1]} ON {on}", tuple(columns)))

    def read_twice(self) -> Select:
        """A row that two readers of one common table put together; many rows tie for it."""
        name, order = self._name(), self._pick(["", " ORDER BY s.item", " ORDER BY s.shop DESC"])
        source = self._pick(["sales s", "sales s JOIN items i ON s.item = i.item"])
        cut = f"SELECT s.rid, s.shop, s.item FROM {source}{order} LIMIT 1"
        columns = self._pick([("rid", "shop"), ("item", "rid"), ("shop", "item")])
        read = " AND ".join(
            f"s.{column} IS NOT DISTINCT FROM (SELECT {column} FROM {name})" for column in columns
        )
        text = f"WITH {name} AS ({cut}) SELECT count(*) > 0 AS a1 FROM {source} WHERE {read}"
        return Select(text, (Column("a1", "bool"),))

    def ordered_inside(self) -> Select:
        """ORDER BY of all columns in a subquery, LIMIT outside, and something between."""
        inner = self._pick([self.plain, self.grouped, self.distinct])()
        columns = tuple(c for c in inner.columns if c.kind in USABLE)
        if len(columns) != len(inner.columns):
            return inner
        order = ", ".join(f"{place}{self._direction()}" for place in range(1, len(columns) + 1))
        cut = self._pick(["", "", " LIMIT 6"])
        alias = self._name()
        made = Relation(f"({inner.text} ORDER BY {order}{cut}) AS {alias}", under(alias, columns))
        outer = self._pick([" LIMIT 2", " LIMIT 3 OFFSET 1", " OFFSET 2"])
        where = f" WHERE {self.comparison(made)}" if self._one_in(3) else ""
        return self._select(list(made.columns), f"FROM {made.text}{where}{outer}")

    def bracketed(self) -> Select:
        """Aggregates in queries with more parentheses than they need."""
        inner = self._pick([self.total, self.grouped])()
        columns = tuple(c for c in inner.columns if c.kind in USABLE)
        if len(columns) != len(inner.columns):
            return inner
        alias = self._name()
        text = f"(({inner.text}) UNION ALL (({inner.text})))"
        return self._over(Relation(f"{text} AS {alias}", under(alias, columns)))

    def with_lambda(self) -> Select:
        """A lambda with a parameter that may be called like a column, a table or an alias."""
        alias = self._name()
        table, values, kind, other, operator = self._pick(
            [("sales", "tags", "texts", "shop", "||"), ("items", "codes", "ints", "item", "+")]
        )
        source = self._table(table, alias)
        name = self._pick([values, other, table, alias, "x"])
        one, two = (self._pick([name, name.upper()]) for _ in range(2))
        body = self._pick([two, f"{two} {operator} {other}", f"{other} {operator} {two}"])
        made = Column(f"list_transform({alias}.{values}, lambda {one}: {body})", kind)
        tail = f"FROM {source.text}{self.where(source)}"
        return self._select([made, self.expression(source)], tail)

    def stacked(self) -> Select:
        """Groups of groups, with a scalar subquery over the same common table."""
        inner = self.grouped()
        columns = tuple(c for c in inner.columns if c.kind in USABLE)
        numbers = [c for c in columns if c.kind in ("int", "decimal", "float")]
        if not numbers:
            return inner
        name, number = self._name(), self._pick(numbers).text
        outer = self._over(Relation(name, under(name, columns)))
        call = self._pick(["min", "max", "median"])
        extra = f"{name}.{number} >= (SELECT {call}({number}) FROM {name})"
        text = outer.text
        if " WHERE " not in text and " GROUP BY " not in text:
            text += f" WHERE {extra}"
        return Select(f"WITH {name} AS ({inner.text}) {text}", outer.columns)

    def starred(self) -> Select:
        table = self._pick(list(SCHEMAS))
        source = self._table(table, self._name())
        names = [f'"{name}"' for name in SCHEMAS[table]]
        columns = tuple(Column(n, c.kind) for n, c in zip(names, source.columns, strict=True))
        made = Select(f"SELECT * FROM {source.text}{self.where(source)}", columns)
        if self._one_in(2):
            return made
        alias = self._name()
        return self._over(Relation(f"({made.text}) AS {alias}", under(alias, columns)))

    def by_alias(self) -> Select:
        """Names of the list used by GROUP BY, HAVING and other items of the list."""
        source = self.source()
        key, call = self.key(source), self._pick(["count(*)", "count(DISTINCT 1)", "sum(1)"])
        where = self.where(source)
        text = (
            f"SELECT {key.text} AS a1, {call} AS a2, a2 + 1 AS a3 FROM {source.text}{where} "
            f"GROUP BY a1{self._pick(['', ' HAVING a2 > 1', ' HAVING count(*) < 9'])}"
        )
        return Select(text, (Column("a1", key.kind), Column("a2", "int"), Column("a3", "int")))

    def _over(self, source: Relation) -> Select:
        """A SELECT over a given relation."""
        tail = f"FROM {source.text}{self.where(source)}"
        if self._one_in(3):
            calls = [self.aggregate(source) for _ in range(2)]
            return self._select(calls, tail)
        if self._one_in(2):
            key = self.key(source)
            return self._select([key, self.aggregate(source)], f"{tail} GROUP BY {key.text}")
        return self._select([self.expression(source) for _ in range(2)], tail)

    def _of_kinds(self, kinds: Sequence[str]) -> Select:
        """A SELECT whose columns have these kinds."""
        source = self.source()
        listed = [self._of_kind(source, kind) for kind in kinds]
        return self._select(listed, f"FROM {source.text}{self.where(source)}")

    def _of_kind(self, source: Relation, kind: str) -> Column:
        found = source.of(kind)
        if found and not self._one_in(6):
            return self._pick(found)
        literal = {"int": "1", "text": "'a'", "date": "DATE '2020-01-05'", "float": "0.5::DOUBLE"}
        return Column(literal[kind], kind)

    def source(self) -> Relation:
        """One to three tables."""
        made = self._table(self._pick(list(SCHEMAS)), self._name())
        for _ in range(self._pick([0, 0, 1, 1, 2])):
            made = self._joined(made)
        return made

    def _joined(self, left: Relation) -> Relation:
        kind = self._pick(
            ["JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN",
             "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ","]
        )  # fmt: skip
        right = self._table(self._pick(list(SCHEMAS)), self._name())
        pairs = [
            (one, two)
            for one in left.columns
            for two in right.columns
            if (one.kind == two.kind and one.kind in _JOINED) or {one.kind, two.kind} in _MIXED
        ]
        columns = left.columns if "SEMI" in kind or "ANTI" in kind else left.columns + right.columns
        if kind in ("CROSS JOIN", ","):
            return Relation(f"{left.text} {kind} {right.text}", columns)
        on = " AND ".join(
            f"{one.text} = {two.text}"
            for one, two in self.chance.sample(pairs, k=min(len(pairs), self._pick([1, 1, 1, 2])))
        )
        inequality = " AND " + self.comparison(left) if self._one_in(6) else ""
        if "FULL" in kind or "RIGHT" in kind:
            inequality = ""
        return Relation(f"{left.text} {kind} {right.text} ON {on}{inequality}", columns)

    def _table(self, table: str, alias: str) -> Relation:
        columns = tuple(
            Column(
                f'{alias}."{name}"' if " " in name else f"{alias}.{name}",
                _KINDS.get(kind, "decimal"),
                name == "rid",
            )
            for name, kind in SCHEMAS[table].items()
        )
        return Relation(f"{table} AS {alias}", columns)

    def where(self, source: Relation) -> str:
        if self._one_in(2):
            return ""
        conditions = [self.condition(source) for _ in range(self._pick([1, 1, 2]))]
        return " WHERE " + " AND ".join(conditions)

    def condition(self, source: Relation) -> str:
        simple = self.comparison(source)
        choice = self.chance.randrange(10)
        if choice == 0:
            return f"({simple} OR {self.comparison(source)})"
        if choice == 1:
            return f"NOT {simple}"
        if choice == 2 and (found := source.of("int")):
            word = self._pick(["IN", "IN", "NOT IN"])
            column = self._pick(found).text
            inner = self._pick(["item", "rid"])
            return f"{column} {word} (SELECT {inner} FROM items WHERE rid < 6)"
        if choice == 3 and (found := source.of("text")):
            word = self._pick(["EXISTS", "NOT EXISTS"])
            inner, column = self._name(), self._pick(found).text
            return f"{word} (SELECT 1 FROM shops {inner} WHERE {inner}.shop = {column})"
        if choice == 4 and (found := source.of("float")):
            column = self._pick(found).text
            return f"{column} > (SELECT min(weight) FROM items)"
        if choice == 6 and (found := source.of("int")):
            inner, column = self._name(), self._pick(found).text
            more = self._pick(["", f" AND {inner}.weight > 1", f" AND {inner}.rid <> {column}"])
            word = self._pick(["EXISTS", "NOT EXISTS"])
            return f"{word} (SELECT * FROM items {inner} WHERE {inner}.item = {column}{more})"
        if choice == 5 and (found := source.of("int")):
            return f"{self._pick(found).text} <= (SELECT count(*) / 2 FROM shops)"
        return simple

    def comparison(self, source: Relation) -> str:
        kinds = (
            "int", "text", "float", "date", "decimal", "bool", "texts", "uint", "struct",
            "interval", "blob", "wide",
        )  # fmt: skip
        column = self._pick(source.of(*kinds) or [Column("1", "int")])
        name = column.text
        options = {
            "int": [f"{name} > 2", f"{name} BETWEEN 0 AND 5", f"{name} % 2 = 0", f"{name} IS NULL"],
            "text": [f"{name} = 'a'", f"{name} LIKE 'a%'", f"length({name}) > 0",
                     f"{name} IS NOT NULL", f"{name} IN ('a', 'B')"],
            "float": [f"{name} >= 0", f"{name} <> 0.0", f"isnan({name})", f"{name} < 3.5"],
            "date": [f"{name} < DATE '2020-02-01'", f"month({name}) = 1"],
            "decimal": [f"{name} > 1.5", f"{name} IS NOT NULL"],
            "bool": [f"{name}", f"{name} IS NOT TRUE"],
            "texts": [f"list_contains({name}, 'a')", f"len({name}) = 1"],
            "uint": [f"{name} > 2", f"{name} IN (1, 7)", f"{name} IS NULL"],
            "wide": [f"{name} > 2", f"{name} IN (1, 7)", f"{name} IS NULL"],
            "struct": [f"({name}).x = 1", f"{name} IS NOT NULL",
                       f"{name} = {{'x': 1, 'y': 'a'}}"],
            "interval": [f"{name} > INTERVAL 1 HOUR", f"{name} = INTERVAL 1 DAY"],
            "blob": [f"{name} = 'a'::BLOB", f"{name} >= 'a'::BLOB", f"octet_length({name}) > 1"],
        }  # fmt: skip
        return self._pick(options[column.kind])

    def expression(self, source: Relation) -> Column:
        column = self._pick(source.columns)
        name = column.text
        options = {
            "int": [(name, "int"), (f"{name} + 1", "int"), (f"{name} * 2 - 3", "int"),
                    (f"CAST({name} AS VARCHAR)", "text"), (f"{name} // 2", "int"),
                    (f"round({name} / 4, 6)", "float"), (f"coalesce({name}, -1)", "int"),
                    (f"CASE WHEN {name} > 2 THEN 'high' WHEN {name} < 0 THEN 'low' END", "text")],
            "text": [(name, "text"), (f"upper({name})", "text"), (f"length({name})", "int"),
                     (f"{name} || '!'", "text"), (f"coalesce({name}, 'none')", "text")],
            "float": [(name, "float"), (f"{name} * 2", "float"), (f"abs({name})", "float"),
                      (f"CASE WHEN {name} > 0 THEN {name} ELSE 0 END", "float")],
            "date": [(name, "date"), (f"year({name})", "int"), (f"{name} + 1", "date"),
                     (f"date_trunc('month', {name})", "moment")],
            "decimal": [(name, "decimal"), (f"{name} * 2", "decimal"), (f"-{name}", "decimal")],
            "bool": [(name, "bool"), (f"NOT {name}", "bool")],
            "texts": [(name, "texts"), (f"len({name})", "int"), (f"{name}[1]", "text")],
            "ints": [(name, "ints"), (f"{name}[1]", "int"), (f"len({name})", "int")],
            "moment": [(name, "moment")],
            "uint": [(name, "uint"), (f"{name} // 2", "uint"), (f"coalesce({name}, 9)", "uint"),
                     (f"CAST({name} AS VARCHAR)", "text"), (f"{name} > 3", "bool")],
            "wide": [(name, "wide"), (f"{name} // 2", "wide"), (f"coalesce({name}, 9)", "wide"),
                     (f"CAST({name} AS VARCHAR)", "text"), (f"{name} > 3", "bool")],
            "struct": [(name, "struct"), (f"({name}).x", "int"), (f"({name})['y']", "text"),
                       (f"struct_pack(x := ({name}).x + 1, y := 'c')", "struct")],
            "interval": [(name, "interval"), (f"extract(day FROM {name})", "int"),
                         (f"DATE '2020-01-31' + {name}", "moment")],
            "blob": [(name, "blob"), (f"octet_length({name})", "int"), (f"hex({name})", "text")],
        }  # fmt: skip
        text, kind = self._pick(options[column.kind])
        return Column(text, kind)

    def key(self, source: Relation) -> Column:
        for _ in range(5):
            made = self.expression(source)
            if made.kind != "inexact":
                return made
        return Column("1", "int")

    def aggregate(self, source: Relation) -> Column:
        made = self._aggregate(source)
        if self._one_in(5) and "OVER" not in made.text:
            return Column(f"{made.text} FILTER (WHERE {self.comparison(source)})", made.kind)
        return made

    def _aggregate(self, source: Relation) -> Column:
        column = self._pick(source.columns)
        name = column.text
        options: list[tuple[str, str]] = [
            ("count(*)", "int"), (f"count({name})", "int"), (f"count(DISTINCT {name})", "int"),
        ]  # fmt: skip
        if column.kind in ("uint", "wide", "interval", "blob", "struct"):
            options += [(f"min({name})", column.kind), (f"max({name})", column.kind)]
        if column.kind in ("uint", "wide"):
            options += [
                (f"sum({name} // 9)", column.kind), (f"quantile_disc({name}, 0.5)", column.kind),
            ]  # fmt: skip
        if column.kind in ("int", "float", "decimal", "text", "date"):
            options += [(f"min({name})", column.kind), (f"max({name})", column.kind)]
        if column.kind in ("int", "float", "decimal"):
            options += [
                (f"sum({name})", column.kind), (f"sum(DISTINCT {name})", column.kind),
                (f"avg({name})", "inexact"), (f"round(avg({name}), 4)", "inexact"),
                (f"stddev({name})", "inexact"), (f"stddev_pop({name})", "inexact"),
                (f"var_samp({name})", "inexact"), (f"quantile_disc({name}, 0.5)", column.kind),
                (f"sum({name}) / count(*)", "inexact"), (f"sum({name} + 1)", column.kind),
            ]  # fmt: skip
        if column.kind in ("int", "float"):
            options += [(f"median({name})", "inexact"), (f"quantile_cont({name}, 0.9)", "inexact")]
        if column.kind == "text":
            options += [(f"string_agg({name}, ',' ORDER BY {name})", "text")]
        if column.kind in ("int", "text", "date"):
            options += [(f"list({name} ORDER BY {name})", "list")]
            options += [(f"first({name} ORDER BY {name})", column.kind)]
        if column.kind == "bool":
            options += [(f"bool_and({name})", "bool"), (f"count_if({name})", "int")]
        text, kind = self._pick(options)
        return Column(text, kind)

    def aggregate_condition(self, source: Relation) -> str:
        column = self._pick(source.columns).text
        return self._pick(
            ["count(*) > 1", f"count({column}) >= 1", f"count(DISTINCT {column}) < 4"]
        )

    def _select(self, listed: Sequence[Column], tail: str) -> Select:
        named = tuple(Column(f"a{n}", column.kind) for n, column in enumerate(listed, 1))
        items = ", ".join(f"{c.text} AS {n.text}" for c, n in zip(listed, named, strict=True))
        return Select(f"SELECT {items} {tail}", named)

    def _direction(self) -> str:
        return self._pick(["", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC"])

    def _name(self) -> str:
        self._names += 1
        return f"r{self._names}"

    def _one_in(self, number: int) -> bool:
        return self.chance.randrange(number) == 0

    def _pick(self, options: Sequence[Option]) -> Option:
        return options[self.chance.randrange(len(options))]
