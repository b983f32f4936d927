"""The five answers of the books application."""

import re
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from . import rows

FILES = {"books": "books_data.csv", "reviews": "Books_rating.csv"}


@dataclass(frozen=True)
class Thresholds:
    """The parameters of the application, with their defaults."""

    subject: str = "Computers"
    word: str = "distributed"
    from_year: int = 2000
    to_year: int = 2023
    min_decades: int = 10
    decade: int = 1990
    min_reviews: int = 500
    top_books: int = 10
    category: str = "Fiction"
    quantile: float = 0.9


@dataclass(frozen=True)
class Book:
    title: str
    authors: list[str]
    categories: list[str]
    year: int
    publisher: str | None


@dataclass(frozen=True)
class Review:
    title: str
    score: Fraction
    text: str


@dataclass(frozen=True)
class Tables:
    books: rows.Table[Book]
    reviews: rows.Table[Review]


def answer(
    data: Path, files: rows.Files | None = None, parameters: dict[str, Any] | None = None
) -> rows.Answers:
    """The rows of every query, in their final order."""
    tables = read(data, files)
    books, reviews = tables.books.rows, tables.reviews.rows
    given = Thresholds(**(parameters or {}))
    reviewed = much_reviewed(books, reviews, given)
    return {
        "q1": books_on_subject(books, given),
        "q2": authors_of_many_decades(books, given),
        "q3": [{"title": book.title, "authors": book.authors} for book, _ in reviewed],
        "q4": best_scores(reviewed, given),
        "q5": happiest_titles(books, reviews, given),
    }


def rejects(data: Path, files: rows.Files | None = None) -> dict[str, int]:
    """How many rows each table left out."""
    return {table: sum(counts.values()) for table, counts in reasons(data, files).items()}


def reasons(data: Path, files: rows.Files | None = None) -> dict[str, dict[str, int]]:
    """How many rows each table left out for each reason."""
    tables = read(data, files)
    return {"books": dict(tables.books.rejects), "reviews": dict(tables.reviews.rejects)}


def read(data: Path, files: rows.Files | None) -> Tables:
    paths = {name: [data / file] for name, file in FILES.items()} | (files or {})
    return Tables(
        books=rows.table(paths["books"], book), reviews=rows.table(paths["reviews"], review)
    )


def book(row: rows.Row) -> Book:
    """A book, or the first reason against it in the order of these lines."""
    title = rows.filled(row, "Title")
    authors = rows.filled(row, "authors")
    categories = rows.filled(row, "categories")
    year = rows.need(rows.year(row["publishedDate"]), "publishedDate has no four-digit year")
    return Book(
        title=title,
        authors=rows.need(rows.items(authors), "authors is not a list"),
        categories=rows.need(rows.items(categories), "categories is not a list"),
        year=year,
        publisher=row["publisher"],
    )


def review(row: rows.Row) -> Review:
    title = rows.filled(row, "Title")
    score = rows.need(rows.number(row["review/score"]), "review/score is not a number")
    return Review(title, score, row["review/text"] or "")


def books_on_subject(books: list[Book], given: Thresholds) -> list[dict[str, object]]:
    word = re.compile(re.escape(given.word), re.IGNORECASE | re.ASCII)
    chosen = [
        book
        for book in books
        if given.subject in book.categories
        and given.from_year <= book.year <= given.to_year
        and word.search(book.title)
    ]
    chosen.sort(key=lambda book: (book.title, book.authors, nulls_last(book.publisher)))
    return [
        {"title": book.title, "authors": book.authors, "publisher": book.publisher}
        for book in chosen
    ]


def nulls_last(text: str | None) -> tuple[bool, str]:
    return text is None, text or ""


def authors_of_many_decades(books: list[Book], given: Thresholds) -> list[dict[str, object]]:
    decades: dict[str, set[int]] = defaultdict(set)
    for book in books:
        for author in book.authors:
            decades[author].add(book.year // 10)
    lasting = sorted(author for author, found in decades.items() if len(found) >= given.min_decades)
    return [{"author": author} for author in lasting]


def much_reviewed(
    books: list[Book], reviews: list[Review], given: Thresholds
) -> list[tuple[Book, Fraction]]:
    """Books of the decade with many reviews, each with its mean score, by title and authors."""
    scores: dict[str, list[Fraction]] = defaultdict(list)
    for review in reviews:
        scores[review.title].append(review.score)
    chosen = [
        (book, rows.mean(scores[book.title]))
        for book in books
        if given.decade <= book.year <= given.decade + 9
        and len(scores[book.title]) >= given.min_reviews
    ]
    return sorted(chosen, key=lambda scored: (scored[0].title, scored[0].authors))


def best_scores(
    reviewed: list[tuple[Book, Fraction]], given: Thresholds
) -> list[dict[str, object]]:
    # The sort is stable: books of equal mean stay in the order of title and authors.
    best = sorted(reviewed, key=lambda scored: -scored[1])[: given.top_books]
    return [{"title": book.title, "mean_score": float(mean)} for book, mean in best]


def happiest_titles(
    books: list[Book], reviews: list[Review], given: Thresholds
) -> list[dict[str, object]]:
    chosen = {book.title for book in books if given.category in book.categories}
    polarities: dict[str, list[Fraction]] = defaultdict(list)
    for review in reviews:
        if review.title in chosen:
            polarities[review.title].append(rows.polarity(review.text))
    means = {title: rows.mean(found) for title, found in polarities.items()}
    if not means:
        return []
    threshold = quantile(list(means.values()), Fraction(str(given.quantile)))
    return [{"title": title} for title in sorted(means) if means[title] >= threshold]


def quantile(values: list[Fraction], share: Fraction) -> Fraction:
    """The quantile of some values, with linear interpolation between the two nearest."""
    ordered = sorted(values)
    below, beyond = divmod(share * (len(ordered) - 1), 1)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + beyond * (ordered[above] - ordered[below])
