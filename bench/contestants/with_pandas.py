"""Idiomatic pandas: each file read once, needed columns only, filters before expensive work.

The default parser, since the pyarrow one does not take newlines inside quoted fields. Strings are
Arrow-backed (pandas' own choice), so Caudal's kernels read them without a copy. pandas fills a
record that is too short with nulls, and cannot tell that from an empty last field, so a null
there counts as malformed; the generated files have no empty last field.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from bench.answers import Answers, Row
from caudal.kernels.literals import items, names
from caudal.kernels.sentiment.column import score

_TEXTS = pd.ArrowDtype(pa.list_(pa.string()))


def answer(app: str, folder: Path) -> Answers:
    return {"books": _answer_books, "movies": _answer_movies}[app](folder)


def _answer_books(folder: Path) -> Answers:
    books, reviews = _books(folder), _reviews(folder)
    nineties = books[books["year"].between(1990, 1999)]
    reviewed = nineties.merge(_popular(reviews), on="Title")
    return {
        "q1": _distributed_computing(books),
        "q2": _authors_of_many_decades(books),
        "q3": _rows(reviewed, {"Title": "title", "authors": "authors"}),
        "q4": _best_scores(reviewed),
        "q5": _happiest_fiction(books, reviews),
    }


def _books(folder: Path) -> pd.DataFrame:
    columns = ["Title", "authors", "publisher", "publishedDate", "categories"]
    books = _read(folder / "books_data.csv", columns)
    books["year"] = books["publishedDate"].str.extract("([0-9]{4})", expand=False).astype(float)
    books = books.dropna(subset=["Title", "authors", "categories", "year"])
    books = books.assign(authors=_items(books["authors"]), categories=_items(books["categories"]))
    return books.dropna(subset=["authors", "categories"])


def _reviews(folder: Path) -> pd.DataFrame:
    reviews = _read(folder / "Books_rating.csv", ["Title", "review/score", "review/text"])
    reviews["review/score"] = pd.to_numeric(reviews["review/score"], errors="coerce")
    return reviews.dropna()


def _popular(reviews: pd.DataFrame) -> pd.DataFrame:
    """Titles with many reviews, and their mean scores."""
    means = reviews.groupby("Title")["review/score"].agg(reviews="size", mean_score="mean")
    return means[means["reviews"] >= 500].reset_index()


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


def _happiest_fiction(books: pd.DataFrame, reviews: pd.DataFrame) -> list[Row]:
    fiction = books["Title"][_holds(books["categories"], "Fiction")]
    reviews = reviews[reviews["Title"].isin(fiction.unique())]
    means = _sentiment(reviews["review/text"]).groupby(reviews["Title"]).mean()
    happiest = means.index[means >= means.quantile(0.9)]
    return [{"title": title} for title in happiest]


def _answer_movies(folder: Path) -> Answers:
    movies = _movies(folder)
    since_2000 = movies[movies["release_date"].dt.year >= 2000]
    argentine = since_2000[_holds(since_2000["production_countries"], "Argentina")]
    return {
        "q1": _argentine_spanish_films(argentine),
        "q2": _biggest_budgets(movies),
        "q3": _best_and_worst(argentine, _ratings(folder)),
        "q4": _busiest_actors(argentine, _credits(folder, argentine["id"])),
        "q5": _returns_by_sentiment(movies),
    }


def _movies(folder: Path) -> pd.DataFrame:
    lists = ["genres", "production_countries", "spoken_languages"]
    numbers = ["id", "budget", "revenue"]
    columns = [*numbers, *lists, "title", "release_date", "overview"]
    movies = _read(folder / "movies_metadata.csv", columns)
    movies[numbers] = movies[numbers].apply(pd.to_numeric, errors="coerce")
    movies["release_date"] = pd.to_datetime(
        movies["release_date"], format="%Y-%m-%d", errors="coerce"
    )
    movies = movies.dropna()
    movies = movies.assign(**{name: _names(movies[name]) for name in lists})
    return movies.dropna(subset=lists)


def _ratings(folder: Path) -> pd.DataFrame:
    """All ratings. A column with a malformed value comes as text, so numbers are made here."""
    ratings = pd.read_csv(folder / "ratings.csv", low_memory=False)
    return ratings.apply(pd.to_numeric, errors="coerce").dropna()


def _credits(folder: Path, ids: "pd.Series[Any]") -> pd.DataFrame:
    credits_ = _read(folder / "credits.csv", ["id", "cast"])
    credits_["id"] = pd.to_numeric(credits_["id"], errors="coerce")
    chosen = credits_[credits_["id"].isin(ids)]
    return chosen.assign(cast=_names(chosen["cast"].fillna("[]"))).dropna()


def _argentine_spanish_films(argentine: pd.DataFrame) -> list[Row]:
    early = argentine[argentine["release_date"].dt.year <= 2009]
    chosen = early[_holds(early["production_countries"], "Spain")]
    return _rows(chosen, {"title": "title", "genres": "genres"})


def _biggest_budgets(movies: pd.DataFrame) -> list[Row]:
    alone = movies[movies["production_countries"].list.len() == 1]
    totals = alone["budget"].groupby(alone["production_countries"].list[0]).sum().reset_index()
    best = totals.sort_values(["budget", "production_countries"], ascending=[False, True])
    return _rows(best.head(5), {"production_countries": "country", "budget": "budget"})


def _best_and_worst(argentine: pd.DataFrame, ratings: pd.DataFrame) -> list[Row]:
    ratings = ratings[ratings["movieId"].isin(argentine["id"])]
    means = ratings.groupby("movieId")["rating"].mean()
    films = argentine[["id", "title"]].merge(means, left_on="id", right_index=True)
    return [
        {"kind": kind, **_first(films.sort_values(["rating", "id", "title"], ascending=order))}
        for kind, order in (("MAX", [False, True, True]), ("MIN", [True, True, True]))
    ]


def _first(films: pd.DataFrame) -> Row:
    rows = _rows(films.head(1), {"title": "title", "rating": "rating"})
    return rows[0] if rows else {"title": None, "rating": None}


def _busiest_actors(argentine: pd.DataFrame, credits_: pd.DataFrame) -> list[Row]:
    actors = argentine[["id"]].merge(credits_, on="id")["cast"].explode().dropna()
    films = actors.value_counts().rename_axis("actor").reset_index(name="films")
    best = films.sort_values(["films", "actor"], ascending=[False, True]).head(10)
    return _rows(best, {"actor": "actor", "films": "films"})


def _returns_by_sentiment(movies: pd.DataFrame) -> list[Row]:
    priced = movies[(movies["budget"] != 0) & (movies["revenue"] != 0)]
    ratios = priced["revenue"] / priced["budget"]
    means = ratios.groupby(_sentiment(priced["overview"]) >= 0).mean().to_dict()
    return [
        {"sentiment": "POSITIVE", "mean_ratio": means.get(True)},
        {"sentiment": "NEGATIVE", "mean_ratio": means.get(False)},
    ]


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The columns as text; only an empty field is null."""
    return pd.read_csv(
        path, usecols=list(columns), dtype=str, keep_default_na=False, na_values=[""]
    )


def _rows(frame: pd.DataFrame, columns: dict[str, str]) -> list[Row]:
    """The columns under their new names, with nulls as None."""
    table = pa.Table.from_pandas(frame[list(columns)], preserve_index=False)
    rows: list[Row] = table.rename_columns(list(columns.values())).to_pylist()
    return rows


def _arrow(texts: "pd.Series[Any]") -> Any:
    return pa.array(texts)


def _items(texts: "pd.Series[Any]") -> "pd.Series[Any]":
    return pd.Series(pd.array(items(_arrow(texts)), dtype=_TEXTS), index=texts.index)


def _names(texts: "pd.Series[Any]") -> "pd.Series[Any]":
    return pd.Series(pd.array(names(_arrow(texts)), dtype=_TEXTS), index=texts.index)


def _holds(lists: "pd.Series[Any]", wanted: str) -> "pd.Series[bool]":
    """Whether each list has this element."""
    return pd.Series([wanted in found for found in pa.array(lists).to_pylist()], index=lists.index)


def _sentiment(texts: "pd.Series[Any]") -> "pd.Series[Any]":
    return pd.Series(score(_arrow(texts)), index=texts.index)
