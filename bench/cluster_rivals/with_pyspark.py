"""PySpark in local mode with two threads, hand-written.

- The reviews are read once for all queries, needed columns only, and rows that no query asks for
  are dropped by a broadcast join before sentiment is computed.
- Spark takes a CSV file with newlines inside quoted fields as one piece (`multiLine`), so one
  thread parses it while the Arrow UDF computes in a Python process beside it.
- Sentiment and lists are Caudal's kernels, as Arrow UDFs.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from bench.answers import Answers, Row
from bench.cluster_rivals.spark_session import local_session
from caudal.kernels.literals import items
from caudal.kernels.sentiment.column import score

_PER_TITLE = """
SELECT title, any_value(fiction) AS fiction, count(*) AS reviews, sum(score) AS score,
    sum(sentiment(if(fiction, text, NULL))) AS sentiment
FROM (
    SELECT /*+ BROADCAST(wanted) */ r.Title AS title, r.`review/text` AS text, w.fiction,
        try_cast(r.`review/score` AS DOUBLE) AS score
    FROM reviews AS r JOIN wanted AS w ON w.title = r.Title
    WHERE r.`review/text` IS NOT NULL AND try_cast(r.`review/score` AS DOUBLE) IS NOT NULL
)
GROUP BY title
"""
_WANTED = """
SELECT title, max(array_contains(categories, 'Fiction')) AS fiction FROM books
WHERE array_contains(categories, 'Fiction') OR year BETWEEN 1990 AND 1999 GROUP BY title
"""
_BOOKS_SQL = """
SELECT title, authors, publisher, categories, year FROM (
    SELECT title, items(authors) AS authors, publisher, items(categories) AS categories, year
    FROM (
        SELECT Title AS title, authors, publisher, categories,
            try_cast(nullif(regexp_extract(publishedDate, '([0-9]{4})', 1), '') AS INT) AS year
        FROM raw_books
    )
    WHERE title IS NOT NULL AND authors IS NOT NULL AND categories IS NOT NULL AND year IS NOT NULL
)
WHERE authors IS NOT NULL AND categories IS NOT NULL
"""
_QUERIES = {
    "q1": """
        SELECT title, authors, publisher FROM books
        WHERE array_contains(categories, 'Computers') AND year BETWEEN 2000 AND 2023
            AND contains(lower(title), 'distributed')
    """,
    "q2": """
        SELECT author FROM (SELECT explode(authors) AS author, year DIV 10 AS decade FROM books)
        GROUP BY author HAVING count(DISTINCT decade) >= 10
    """,
    "q3": """
        SELECT b.title, b.authors FROM books AS b JOIN per_title AS r ON r.title = b.title
        WHERE b.year BETWEEN 1990 AND 1999 AND r.reviews >= 500
    """,
    "q4": """
        SELECT b.title, r.score / r.reviews AS mean_score
        FROM books AS b JOIN per_title AS r ON r.title = b.title
        WHERE b.year BETWEEN 1990 AND 1999 AND r.reviews >= 500
        ORDER BY mean_score DESC, b.title, b.authors LIMIT 10
    """,
    "q5": """
        WITH means AS (
            SELECT title, sentiment / reviews AS mean FROM per_title WHERE fiction
        )
        SELECT title FROM means WHERE mean >= (SELECT percentile(mean, 0.9) FROM means)
    """,
}


@contextlib.contextmanager
def opened() -> Iterator[Callable[[Path], Answers]]:
    """A session; gives what answers all queries over a folder."""
    with local_session() as session:
        session.udf.register("sentiment", f.arrow_udf(_sentiment, "double"))
        session.udf.register("items", f.arrow_udf(_items, "array<string>"))
        yield lambda folder: _answer(session, folder)


def _answer(session: Any, folder: Path) -> Answers:
    reviews = _read(session, folder / "Books_rating.csv")
    books = _sql(session, _BOOKS_SQL, raw_books=_read(session, folder / "books_data.csv")).cache()
    wanted = _sql(session, _WANTED, books=books)
    per_title = _sql(session, _PER_TITLE, reviews=reviews, wanted=wanted).cache()
    per_title.createOrReplaceTempView("per_title")
    try:
        return {name: _rows(session.sql(sql)) for name, sql in _QUERIES.items()}
    finally:
        books.unpersist()
        per_title.unpersist()


def _read(session: Any, path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        schema = ", ".join(f"`{name}` STRING" for name in file.readline().strip().split(","))
    return session.read.csv(
        str(path), schema=schema, header=True, multiLine=True, quote='"', escape='"'
    )


def _sql(session: Any, sql: str, **views: Any) -> Any:
    for name, frame in views.items():
        frame.createOrReplaceTempView(name)
    return session.sql(sql)


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict() for row in frame.collect()]


def _sentiment(texts: pa.Array) -> pa.Array:
    return pa.array(score(texts))


def _items(texts: pa.Array) -> pa.Array:
    return items(texts)
