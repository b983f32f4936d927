"""Real reviews and overviews: all equal to the analyzer, and none needs the slow port."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from textblob import TextBlob

from caudal.kernels.sentiment.column import column_buffers, compiled_lexicon, score
from caudal.kernels.sentiment.kernel import score_rows

SAMPLE = 700
"""Texts per file that the analyzer scores (it takes a millisecond each)."""

FILES = [
    ("sentiment/imdb_reviews.csv", "text"),
    ("sentiment/book_reviews.csv", "text"),
    ("movies/movies_metadata.csv", "overview"),
    ("books/Books_rating.csv", "review/text"),
    ("books/books_data.csv", "description"),
]


def read_texts(path: Path, column: str) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row[column] or "" for row in csv.DictReader(file) if row.get(column) is not None]


@pytest.mark.parametrize(("name", "column"), FILES)
def test_equals_the_analyzer_on_real_texts(real_data: Path, name: str, column: str) -> None:
    texts = read_texts(real_data / name, column)
    texts = texts[:: max(1, len(texts) // SAMPLE)]
    expected = [TextBlob(text).sentiment.polarity for text in texts]
    assert score(pa.array(texts)).tolist() == expected


@pytest.mark.parametrize(("name", "column"), FILES)
def test_the_kernel_declines_almost_no_real_text(real_data: Path, name: str, column: str) -> None:
    data, starts, ends = column_buffers(pa.array(read_texts(real_data / name, column)))
    declined = np.isnan(score_rows(data, starts, ends, compiled_lexicon().tables))
    assert declined.mean() <= 0.0005
