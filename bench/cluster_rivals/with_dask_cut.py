"""Dask with two processes, the reading done by hand around Dask's own reader.

Blocks are cut at true record ends (batches.py) and read by pyarrow, which Dask's reader cannot do
with newlines inside quoted fields. The rest is as in with_dask.py.
"""

from pathlib import Path
from typing import Any

import dask  # type: ignore[import-not-found]
import pandas as pd

from bench.answers import Answers
from bench.cluster_rivals import books as small
from bench.cluster_rivals import cutting
from bench.cluster_rivals.dask_cluster import opened_with


def _answer(folder: Path) -> Answers:
    books = small.clean(pd.concat(_read(folder / "books_data.csv", _frame, small.COLUMNS)))
    fiction, wanted = small.fiction(books), small.wanted(books)
    parts = _read(folder / "Books_rating.csv", _per_title, fiction, wanted)
    return small.answers(books, small.together(pd.concat(parts)))


def _read(path: Path, work: Any, *arguments: Any) -> Any:
    """What some work makes of every block of a file, in order."""
    spans = cutting.spans(path)
    quotes = dask.compute(*(dask.delayed(cutting.count_quotes)(span) for span in spans))
    shared = [dask.delayed(one) for one in arguments]
    blocks = cutting.blocks(spans, list(quotes))
    return dask.compute(*(dask.delayed(work)(block, *shared) for block in blocks))


def _frame(block: cutting.Block, columns: list[str]) -> pd.DataFrame:
    return cutting.read(block, columns).to_pandas()


def _per_title(block: cutting.Block, fiction: pd.Index, wanted: pd.Index) -> pd.DataFrame:
    return small.per_title(_frame(block, small.REVIEWS), fiction, wanted)


opened = opened_with(_answer)
