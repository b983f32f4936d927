"""Dask with two processes, hand-written, with its own CSV reader.

Dask cannot split a CSV file with newlines inside quoted fields, so each file is one partition
(`blocksize=None`, as its documentation says). Needed columns only; the reviews are read once for
all queries, and sentiment, a function over partitions, sees Fiction only.
"""

from pathlib import Path
from typing import Any

import dask.dataframe as dd  # type: ignore[import-not-found]
import pandas as pd

from bench.answers import Answers
from bench.cluster_rivals import books as small
from bench.cluster_rivals.dask_cluster import opened_with


def _answer(folder: Path) -> Answers:
    books = small.clean(_read(folder / "books_data.csv", small.COLUMNS).compute())
    fiction, wanted = small.fiction(books), small.wanted(books)
    reviews = _read(folder / "Books_rating.csv", small.REVIEWS)
    per_title = reviews.map_partitions(
        small.per_title, fiction, wanted, meta=small.per_title(_nothing(), fiction, wanted)
    )
    return small.answers(books, small.together(per_title.compute()))


def _read(path: Path, columns: list[str]) -> Any:
    return dd.read_csv(
        path, blocksize=None, usecols=columns, dtype=str, keep_default_na=False, na_values=[""]
    )


def _nothing() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series([], dtype="str") for name in small.REVIEWS})


opened = opened_with(_answer)
