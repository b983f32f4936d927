"""Random queries in the grammar that a planner is most likely to misread.

Names in any case and in quotes, joins in parentheses, aliases named like columns, LATERAL, PIVOT,
UNPIVOT, NEAREST, COLUMNS, subqueries in every place, joins of up to ten tables, and casts that
would raise on rows that another condition keeps away.
"""

import re
from collections.abc import Callable

from tests.fuzz.odd import OddGenerator
from tests.fuzz.relations import Column, Relation, Select, under
from tests.fuzz.tables import SCHEMAS

_NAMES = sorted(
    {*SCHEMAS, *(name for schema in SCHEMAS.values() for name in schema if name.isalpha())}
)
_WORD = re.compile(rf"'(?:[^']|'')*'|\"[^\"]*\"|\b(?:{'|'.join(_NAMES)})\b(?!\()")


class WildGenerator(OddGenerator):
    """A generator that now and then draws a shape which is easily misread."""

    def queries(self) -> list[tuple[str, bool]]:
        made = super().queries()
        if self._one_in(4):
            return [(self._respelled(sql), ordered) for sql, ordered in made]
        return made

    def _shape(self) -> Select:
        if not self._one_in(4):
            return super()._shape()
        shape: Callable[[], Select] = self._pick(
            [
                self.lateral, self.unpivoted, self.pivoted, self.nearest, self.by_pattern,
                self.nested, self.nested, self.many_joined, self.guarded, self.guarded,
                self.shadowing, self.shadowing, self.renamed,
            ]
        )  # fmt: skip
        return shape()

    def source(self) -> Relation:
        made = super().source()
        if " JOIN " in made.text and "," not in made.text and self._one_in(6):
            return Relation(f"({made.text})", made.columns)
        return made

    def _respelled(self, sql: str) -> str:
        """The text with names of tables and columns in other cases, some of them in quotes."""

        def spelled(found: re.Match[str]) -> str:
            word = found.group()
            if word[0] in "'\"" or not self._one_in(3):
                return word
            return self._pick([word.upper(), word.capitalize(), f'"{word}"', f'"{word.upper()}"'])

        return _WORD.sub(spelled, sql)

    def lateral(self) -> Select:
        outer, inner = self._name(), self._name()
        source = self._table("sales", outer)
        text, kind = self._pick(
            [
                (f"SELECT {outer}.item + 1 AS x", "int"),
                (f"SELECT count(*) AS x FROM items i WHERE i.item = {outer}.item", "int"),
                (f"SELECT max(i.name) AS x FROM items i WHERE i.item < {outer}.item", "text"),
                (f"SELECT i.rid AS x FROM items i WHERE i.rid <= {outer}.rid", "int"),
            ]
        )
        word = self._pick([", LATERAL", ",", " JOIN LATERAL", " LEFT JOIN LATERAL"])
        on = " ON true" if "JOIN" in word else ""
        both = Relation(
            f"{source.text}{word} ({text}) AS {inner}{on}",
            (*source.columns, Column(f"{inner}.x", kind)),
        )
        return self._over(both)

    def unpivoted(self) -> Select:
        """The new column may be called like one of those that it replaces."""
        alias, value = self._name(), self._pick(["v", "rid", "item"])
        table = self._pick(["items", "sales"])
        source = "(SELECT shop_rid AS number, rid, item FROM (SELECT rid AS shop_rid, "
        source += f"rid::BIGINT AS rid, item::BIGINT AS item FROM {table}))"
        nulls = self._pick(["", "INCLUDE NULLS "])
        text = f"{source} UNPIVOT {nulls}({value} FOR n IN (rid, item)) AS {alias}"
        columns = [(value, "int"), ("n", "text"), ("number", "int")]
        made = tuple(Column(f"{alias}.{name}", kind) for name, kind in columns)
        return self._over(Relation(text, made))

    def pivoted(self) -> Select:
        alias = self._name()
        call = self._pick(["count(*)", "sum(item)", "max(rid)"])
        text = (
            f"(PIVOT (SELECT rid, shop, item FROM sales) ON shop IN ('a', 'b') USING {call} "
            f"GROUP BY item) AS {alias}"
        )
        columns = (Column(f"{alias}.item", "int"), Column(f"{alias}.a", "int"))
        return self._over(Relation(text, columns))

    def nearest(self) -> Select:
        """The order of the nearest is total: rid is unique."""
        left, right = self._name(), self._name()
        kind = self._pick(["JOIN", "INNER JOIN", "LEFT JOIN"])
        count = self._pick(["", " 1", " 2", " 3"])
        by = self._pick(["DISTANCE", "SIMILARITY"])
        one, two = self._table("sales", left), self._table("items", right)
        text = (
            f"{one.text} {kind} {two.text} NEAREST{count} BY {by} "
            f"abs({left}.rid - {right}.rid) * 100 + {right}.rid"
        )
        return self._over(Relation(text, (*one.columns, *two.columns)))

    def by_pattern(self) -> Select:
        table = self._pick(["sales", "items"])
        where = self._pick(
            ["", " WHERE COLUMNS('rid|item') > 2", " WHERE COLUMNS(['rid', 'item']) IS NOT NULL"]
        )
        text, columns = self._pick(
            [
                ("COLUMNS('rid|item')", ("rid", "item")),
                ("* LIKE 'ite%'", ("item",)),
                ("* ILIKE 'ITE%'", ("item",)),
                ("COLUMNS(['item', 'rid']) + 1", ("item", "rid")),
            ]
        )
        made = tuple(Column(name, "int") for name in columns)
        return Select(f"SELECT {text} FROM {table}{where}", made)

    def nested(self) -> Select:
        """A subquery somewhere."""
        alias = self._name()
        source = self._table("sales", alias)
        scalar = self._pick(
            [
                "(SELECT max(size) FROM shops)", "(SELECT count(*) FROM SALES)",
                "(SELECT sum(rid) FROM items WHERE item > 2)",
                f"(SELECT count(*) FROM items i WHERE i.item = {alias}.item)",
                f"(SELECT max(i.rid) FROM items i WHERE i.rid < {alias}.rid)",
                "(SELECT count(*) FROM query('FROM items'))",
                "(SELECT max(rid) FROM query_table('sales'))",
            ]
        )  # fmt: skip
        place = self.chance.randrange(7)
        rid = f"{alias}.rid"
        listed = [Column(rid, "int"), Column(f"{alias}.item", "int")]
        tail = f"FROM {source.text}"
        if place == 0:
            return self._select([*listed, Column(f"{rid} + {scalar}", "int")], tail)
        if place == 1:
            return self._select(listed, f"{tail} WHERE {rid} < {scalar}")
        if place == 2:
            case = f"CASE WHEN {rid} > {scalar} THEN 1 ELSE {scalar} END"
            return self._select([*listed, Column(case, "int")], tail)
        if place == 3:
            made = self._select(listed, f"{tail} ORDER BY {rid} - {scalar}, {rid} LIMIT 5")
            return Select(f"SELECT * FROM ({made.text})", made.columns)
        plain = "(SELECT max(size) FROM shops)"
        if place == 4:
            calls = [Column(f"sum({rid} + {plain})", "int")]
            return self._select(calls, f"{tail} HAVING count(*) >= {plain} - 9")
        if place == 5:
            other = self._name()
            on = f"{alias}.item = {other}.item AND {other}.rid < {plain}"
            return self._select(listed, f"{tail} JOIN items AS {other} ON {on}")
        exists = f"EXISTS (SELECT 1 FROM items i WHERE i.item = {alias}.item AND EXISTS "
        exists += f"(SELECT 1 FROM shops h WHERE h.shop = {alias}.shop AND h.rid <= i.rid))"
        return self._select(listed, f"{tail} WHERE {self._pick(['', 'NOT '])}{exists}")

    def many_joined(self) -> Select:
        """A chain of up to ten tables, by a key that is unique: it cannot explode."""
        first = self._name()
        made = self._table(self._pick(list(SCHEMAS)), first)
        text, columns = made.text, made.columns
        for _ in range(self.chance.randrange(3, 10)):
            alias = self._name()
            other = self._table(self._pick(list(SCHEMAS)), alias)
            kind = self._pick(["JOIN", "JOIN", "LEFT JOIN", ","])
            joined = f"{first}.rid = {alias}.rid"
            if kind == ",":
                other = Relation(f"({other.text} JOIN shops AS z{alias} USING (rid))", ())
                text += f" JOIN {other.text} ON {joined.replace(f'{alias}.', f'z{alias}.')}"
            else:
                text += f" {kind} {other.text} ON {joined}"
                columns = (*columns, *other.columns)
        return self._over(Relation(text, columns))

    def guarded(self) -> Select:
        """A cast that raises on rows which another condition keeps away."""
        alias = self._name()
        source = self._table("sales", alias)
        guard = self._pick([f"{alias}.shop = '7'", f"{alias}.shop LIKE '7%'"])
        raising = self._pick(
            [f"CAST({alias}.shop AS INTEGER) > 5", f"{alias}.shop::DATE > DATE '2020-01-01'"]
        )
        where = f" WHERE {guard} AND {raising}"
        listed = [Column(f"{alias}.rid", "int")]
        if self._one_in(2):
            return self._select(listed, f"FROM {source.text}{where}")
        other = self._name()
        join = f"{self._pick(['JOIN', 'LEFT JOIN', 'SEMI JOIN'])} items AS {other}"
        return self._select(
            listed, f"FROM {source.text} {join} ON {alias}.item = {other}.item{where}"
        )

    def shadowing(self) -> Select:
        """Aliases that are called like columns."""
        alias = self._name()
        source = self._table("sales", alias)
        where = self._pick(["", " WHERE rid > 2", " WHERE item > 2 AND rid < 30"])
        listed = self._pick(
            [
                (("rid + 1", "item"), ("item", "rid")),
                (("-rid", "rid"), ("item", "item")),
                (("item", "rid"), ("rid", "shop")),
                (("count(*)", "rid"), ("max(rid)", "item")),
            ]
        )
        items = ", ".join(f"{text} AS {name}" for text, name in listed)
        text = f"SELECT {items} FROM {source.text}{where}"
        inner = tuple(Column(name, "int") for _, name in listed)
        if self._one_in(2):
            return Select(text, inner)
        outer = self._name()
        return self._over(Relation(f"({text}) AS {outer}", under(outer, inner)))

    def renamed(self) -> Select:
        """Columns that a list after the alias renames, to names of other columns too."""
        alias = self._name()
        names = self._pick([("x", "y", "z"), ("shop", "rid", "x"), ("item", "rid", "shop")])
        columns = [
            Column(f"{alias}.{name}", kind)
            for name, kind in zip(names, ("int", "text", "int"), strict=True)
        ]
        if self._one_in(2):
            text = f"(SELECT rid, shop, item FROM sales) AS {alias}({', '.join(names)})"
        else:
            text = f"sales AS {alias}({', '.join(names)})"
        return self._over(Relation(text, tuple(columns)))
