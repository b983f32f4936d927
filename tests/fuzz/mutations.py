"""Statements that nobody wrote: a keyword of DuckDB inserted anywhere in a random query.

Mostly DuckDB refuses the result. Where it accepts it, the statement means something that the
planner may never have heard of, and its rows must be DuckDB's all the same.
"""

import random
import re

import duckdb

# What chooses rows by chance, or by the order in which they come, has no determinate answer.
_CHANCE = frozenset({"sample", "tablesample", "using_sample", "limit", "offset", "fetch"})
_LIKELY = (
    "DISTINCT", "ALL", "NOT", "DESC", "ASC", "NULLS FIRST", "NATURAL", "LEFT", "RIGHT", "FULL",
    "SEMI", "ANTI", "INNER", "CROSS", "ASOF", "POSITIONAL", "OUTER", "LATERAL", "RECURSIVE",
    "BY NAME", "-", "NOT IN (1) AND", "IS NULL OR", "IS NOT NULL AND", "AS x", "+ 1",
    "COLLATE NOCASE",     "FILTER (WHERE true)", "OVER ()", "IGNORE NULLS", "EXISTS", "(", ")",
)  # fmt: skip
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|[^\w\s]""")


def keywords() -> list[str]:
    """DuckDB's keywords, in a fixed order."""
    with duckdb.connect() as connection:
        found = connection.sql("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()
    return sorted(word for (word,) in found if word not in _CHANCE)


def mutated(sql: str, words: list[str], chance: random.Random) -> str:
    """The text with one to three keywords (or other words) inserted before random tokens."""
    places = [found.start() for found in _TOKEN.finditer(sql)][1:]
    for place in sorted(chance.choices(places, k=chance.choice([1, 1, 1, 2, 3])), reverse=True):
        word = chance.choice(_LIKELY if chance.random() < 0.6 else words)
        sql = f"{sql[:place]}{word} {sql[place:]}"
    return sql
