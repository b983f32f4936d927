"""Random queries that mostly grow: filters, inner joins, and groups whose condition stays true."""

from tests.fuzz.queries import Generator
from tests.fuzz.relations import Relation

_MOST = 3  # a group of the small random tables seldom has more rows


class GrowingGenerator(Generator):
    """Draws queries of which most show rows before all batches have come."""

    def texts(self) -> list[str]:
        return [self._filtered(), self._nested(), self._grouped(), self._grouped()]

    def source(self) -> Relation:
        made = self._table(self._pick(["sales", "sales", "items", "shops"]), self._name())
        if not self._one_in(3):
            return made
        other = self._table(self._pick(["sales", "items", "shops"]), self._name())
        left, right = made.columns[0].text, other.columns[0].text
        return Relation(
            f"{made.text} JOIN {other.text} ON {left} = {right}", made.columns + other.columns
        )

    def where(self, source: Relation) -> str:
        return super().where(source) if self._one_in(4) else ""

    def _filtered(self) -> str:
        source = self.source()
        listed = ", ".join(self.expression(source).text for _ in range(2))
        word = self._pick(["", "", "DISTINCT "])
        return f"SELECT {word}{listed} FROM {source.text}{self.where(source)}"

    def _grouped(self) -> str:
        source = self.source() if self._one_in(3) else self._table("sales", self._name())
        key = self._pick([self.key(source), *source.of("text", "int")[1:3]])
        call = self.aggregate(source).text
        return (
            f"SELECT {key.text} AS k, {call} AS c FROM {source.text}{self.where(source)} "
            f"GROUP BY {key.text} HAVING {self._having(source)}"
        )

    def _nested(self) -> str:
        """A condition on groups that stands outside, beside a join, as in books q3."""
        inner, outer, table = self._name(), self._name(), self._pick(["items", "shops"])
        key, name = {"items": ("item", "name"), "shops": ("shop", "size")}[table]
        condition = self._pick(["n >= 2", "n > 1 AND most >= 3", "2 <= n OR least < 0"])
        call = "count(*) AS n, max(rid) AS most, min(item) AS least"
        return (
            f"SELECT {outer}.{name}, {inner}.{key} FROM {table} AS {outer} JOIN "
            f"(SELECT {key}, {call} FROM sales GROUP BY {key}) AS {inner} "
            f"ON {inner}.{key} = {outer}.{key} WHERE {condition} ORDER BY 1, 2"
        )

    def _having(self, source: Relation) -> str:
        one = self._condition(source)
        return one if self._one_in(2) else f"{one} {self._pick(['AND', 'OR'])} {one}"

    def _condition(self, source: Relation) -> str:
        column = self._pick(source.of("int", "float", "decimal", "uint"))
        name, least = column.text, self._pick([1, 2, _MOST])
        return self._pick(
            [
                f"count(*) >= {least}", f"count({name}) > {least}", f"{least} <= count(*)",
                f"count(DISTINCT {name}) >= {least}", f"max({name}) >= {least}",
                f"min({name}) < {least}", f"{least} > min({name})", f"count(*) = {least}",
                f"max({name}) < {least}", f"sum({name}) > {least}", f"count(*) - 1 >= {least}",
            ]
        )  # fmt: skip
