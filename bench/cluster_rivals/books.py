"""The books queries in pandas, in the steps that Dask needs: a partition of reviews at a time."""

from typing import Any

import pandas as pd
import pyarrow as pa

from bench.answers import Answers, Row
from caudal.kernels.literals import items
from caudal.kernels.sentiment.column import score

COLUMNS = ["Title", "authors", "publisher", "publishedDate", "categories"]
REVIEWS = ["Title", "review/score", "review/text"]
_TEXTS = pd.ArrowDtype(pa.list_(pa.string()))


def warm() -> None:
    """Load the kernels: every worker does so before the clock runs."""
    items(pa.array(["['a']"]))
    score(pa.array(["a good book"]))


def clean(books: pd.DataFrame) -> pd.DataFrame:
    """The books that can be used, with lists and a year."""
    books = books.assign(
        year=books["publishedDate"].str.extract("([0-9]{4})", expand=False).astype(float)
    ).dropna(subset=["Title", "authors", "categories", "year"])
    books = books.assign(authors=_items(books["authors"]), categories=_items(books["categories"]))
    return books.dropna(subset=["authors", "categories"])


def fiction(books: pd.DataFrame) -> pd.Index:
    return pd.Index(books["Title"][_holds(books["categories"], "Fiction")].unique())


def wanted(books: pd.DataFrame) -> pd.Index:
    """The titles whose reviews some query asks for."""
    return fiction(books).union(pd.Index(_nineties(books)["Title"].unique()))


def per_title(reviews: pd.DataFrame, fiction: pd.Index, wanted: pd.Index) -> pd.DataFrame:
    """Of some reviews, per title: how many, and the sums of their scores and sentiments."""
    reviews = reviews[reviews["Title"].isin(wanted)].dropna()
    scores = pd.to_numeric(reviews["review/score"], errors="coerce")
    reviews, scores = reviews[scores.notna()], scores.dropna()
    happy = reviews["Title"].isin(fiction)
    sentiments = pd.Series(0.0, index=reviews.index)
    sentiments[happy] = score(pa.array(reviews["review/text"][happy]))
    found = pd.DataFrame(
        {"Title": reviews["Title"], "reviews": 1, "score": scores, "sentiment": sentiments}
    )
    return found.groupby("Title", as_index=False).sum()


def together(parts: pd.DataFrame) -> pd.DataFrame:
    """The sums of all partitions."""
    return parts.groupby("Title", as_index=False).sum()


def answers(books: pd.DataFrame, titles: pd.DataFrame) -> Answers:
    popular = titles[titles["reviews"] >= 500]
    popular = popular.assign(mean_score=popular["score"] / popular["reviews"])
    reviewed = _nineties(books).merge(popular, on="Title")
    return {
        "q1": _distributed_computing(books),
        "q2": _authors_of_many_decades(books),
        "q3": _rows(reviewed, {"Title": "title", "authors": "authors"}),
        "q4": _best_scores(reviewed),
        "q5": _happiest(titles[titles["Title"].isin(fiction(books))]),
    }


def _nineties(books: pd.DataFrame) -> pd.DataFrame:
    return books[books["year"].between(1990, 1999)]


def _distributed_computing(books: pd.DataFrame) -> list[Row]:
    titled = books[
        books["year"].between(2000, 2023)
        & books["Title"].str.lower().str.contains("distributed", regex=False)
    ]
    chosen = titled[_holds(titled["categories"], "Computers")]
    return _rows(chosen, {"Title": "title", "authors": "authors", "publisher": "publisher"})


def _authors_of_many_decades(books: pd.DataFrame) -> list[Row]:
    authors = books[["authors"]].assign(decade=books["year"] // 10).explode("authors").dropna()
    decades = authors.groupby("authors")["decade"].nunique()
    return [{"author": author} for author in decades.index[decades >= 10]]


def _best_scores(reviewed: pd.DataFrame) -> list[Row]:
    best = reviewed.sort_values(["mean_score", "Title"], ascending=[False, True]).head(10)
    return _rows(best, {"Title": "title", "mean_score": "mean_score"})


def _happiest(titles: pd.DataFrame) -> list[Row]:
    means = titles["sentiment"] / titles["reviews"]
    return [{"title": title} for title in titles["Title"][means >= means.quantile(0.9)]]


def _rows(frame: pd.DataFrame, columns: dict[str, str]) -> list[Row]:
    """The columns under their new names, with nulls as None."""
    table = pa.Table.from_pandas(frame[list(columns)], preserve_index=False)
    rows: list[Row] = table.rename_columns(list(columns.values())).to_pylist()
    return rows


def _items(texts: "pd.Series[Any]") -> "pd.Series[Any]":
    return pd.Series(pd.array(items(pa.array(texts)), dtype=_TEXTS), index=texts.index)


def _holds(lists: "pd.Series[Any]", wanted: str) -> "pd.Series[bool]":
    """Whether each list has this element."""
    return pd.Series([wanted in found for found in pa.array(lists).to_pylist()], index=lists.index)
