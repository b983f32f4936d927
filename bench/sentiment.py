"""Texts per second of the sentiment kernel beside TextBlob and vaderSentiment, on one core.

`python -m bench.sentiment` prints a table. Every contestant scores the same texts, pinned to one
core; a figure is the median of its repeats. Slow contestants score a sample of the texts.
"""

import csv
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from caudal.kernels.sentiment.column import score

REPEATS = 5
SAMPLE = 400
REVIEWS = Path(__file__).parents[2] / "shared" / "data" / "sentiment" / "imdb_reviews.csv"

Row = dict[str, str | float]
Scorer = Callable[[], object]


def measure(texts: Sequence[str] | None = None, repeats: int = REPEATS) -> list[Row]:
    """One row per contestant: texts and megabytes per second, and the ratio to TextBlob."""
    texts = list(texts or review_texts())
    sample = texts[:: max(1, len(texts) // SAMPLE)]
    column = pa.array(texts)
    with pinned_to_one_core():
        rows = [
            _row("caudal", texts, _median(lambda: score(column), repeats)),
            _row("TextBlob", sample, _median(_textblob(sample), repeats)),
            _row("vaderSentiment", sample, _median(_vader(sample), repeats)),
        ]
    baseline = float(rows[1]["megabytes_per_second"])
    return [row | {"ratio": float(row["megabytes_per_second"]) / baseline} for row in rows]


def review_texts() -> list[str]:
    """Real reviews where they are at hand, else made-up ones of the same length."""
    if REVIEWS.exists():
        with REVIEWS.open(newline="", encoding="utf-8") as file:
            return [row["text"] for row in csv.DictReader(file)]
    opening = "This is not a very good film, although the acting wasn't bad (it was great!). "
    filler = "The story of a family who leave the city, told in long quiet scenes by the sea. "
    return [opening + filler * (index % 30) for index in range(5000)]


@contextmanager
def pinned_to_one_core() -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _textblob(texts: Sequence[str]) -> Scorer:
    from textblob import TextBlob

    return lambda: [TextBlob(text).sentiment.polarity for text in texts]


def _vader(texts: Sequence[str]) -> Scorer:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyzer = SentimentIntensityAnalyzer()
    return lambda: [analyzer.polarity_scores(text)["compound"] for text in texts]


def _median(run: Scorer, repeats: int) -> float:
    """Seconds of processor time per run, the first run (compilation, lazy loading) left out.

    Processor time, because other processes on the machine disturb it least.
    """
    run()
    seconds = []
    for _ in range(repeats):
        start = time.thread_time()
        run()
        seconds.append(time.thread_time() - start)
    return statistics.median(seconds)


def _row(name: str, texts: Sequence[str], seconds: float) -> Row:
    return {
        "name": name,
        "texts_per_second": len(texts) / seconds,
        "megabytes_per_second": sum(len(text.encode()) for text in texts) / seconds / 1e6,
    }


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| | texts/s | MB/s | times TextBlob |", "|---|---:|---:|---:|"]
    for row in rows:
        texts, megabytes = row["texts_per_second"], row["megabytes_per_second"]
        lines.append(f"| {row['name']} | {texts:,.0f} | {megabytes:,.1f} | {row['ratio']:,.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
