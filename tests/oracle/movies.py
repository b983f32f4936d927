"""The five answers of the movies application."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

from . import rows

FILES = {"movies": "movies_metadata.csv", "credits": "credits.csv", "ratings": "ratings.csv"}


@dataclass(frozen=True)
class Thresholds:
    """The parameters of the application, with their defaults."""

    country: str = "Argentina"
    partner: str = "Spain"
    from_year: int = 2000
    to_year: int = 2009
    top_countries: int = 5
    since_year: int = 2000
    top_actors: int = 10
    positive_from: float = 0.0


@dataclass(frozen=True)
class Film:
    film_id: int
    released: date
    budget: Fraction
    revenue: Fraction
    title: str
    overview: str
    genres: list[str]
    countries: list[str]


@dataclass(frozen=True)
class Rating:
    film_id: int
    stars: Fraction


@dataclass(frozen=True)
class Credit:
    film_id: int
    actors: list[str]


@dataclass(frozen=True)
class Tables:
    films: rows.Table[Film]
    credits: rows.Table[Credit]
    ratings: rows.Table[Rating]


def answer(
    data: Path, files: rows.Files | None = None, parameters: dict[str, Any] | None = None
) -> rows.Answers:
    """The rows of every query, in their final order."""
    tables = read(data, files)
    films = tables.films.rows
    given = Thresholds(**(parameters or {}))
    return {
        "q1": films_of_both_countries(films, given),
        "q2": biggest_budgets(films, given),
        "q3": best_and_worst_rated(films, tables.ratings.rows, given),
        "q4": busiest_actors(films, tables.credits.rows, given),
        "q5": returns_by_sentiment(films, given),
    }


def rejects(data: Path, files: rows.Files | None = None) -> dict[str, int]:
    """How many rows each table left out."""
    return {table: sum(counts.values()) for table, counts in reasons(data, files).items()}


def reasons(data: Path, files: rows.Files | None = None) -> dict[str, dict[str, int]]:
    """How many rows each table left out for each reason."""
    tables = read(data, files)
    return {
        "movies": dict(tables.films.rejects),
        "credits": dict(tables.credits.rejects),
        "ratings": dict(tables.ratings.rejects),
    }


def read(data: Path, files: rows.Files | None) -> Tables:
    paths = {name: [data / file] for name, file in FILES.items()} | (files or {})
    return Tables(
        films=rows.table(paths["movies"], film),
        credits=rows.table(paths["credits"], credit),
        ratings=rows.table(paths["ratings"], rating),
    )


def film(row: rows.Row) -> Film:
    """A film, or the first reason against it in the order of these lines."""
    film_id = rows.need(rows.integer(row["id"]), "id is not an integer")
    released = rows.need(rows.day(row["release_date"]), "release_date is not a YYYY-MM-DD date")
    budget = rows.need(rows.number(row["budget"]), "budget is not a number")
    revenue = rows.need(rows.number(row["revenue"]), "revenue is not a number")
    for name, amount in (("budget", budget), ("revenue", revenue)):
        rows.need(within_range(amount), f"{name} is out of range")
    title = rows.filled(row, "title")
    genres = rows.filled(row, "genres")
    overview = rows.filled(row, "overview")
    countries = rows.filled(row, "production_countries")
    languages = rows.filled(row, "spoken_languages")
    genre_names = listed(genres, "genres")
    country_names = listed(countries, "production_countries")
    listed(languages, "spoken_languages")
    return Film(film_id, released, budget, revenue, title, overview, genre_names, country_names)


def listed(text: str, column: str) -> list[str]:
    return rows.need(rows.names(text), f"{column} is not a list of names")


def rating(row: rows.Row) -> Rating:
    rows.need(rows.integer(row["userId"]), "userId is not an integer")
    film_id = rows.need(rows.integer(row["movieId"]), "movieId is not an integer")
    return Rating(film_id, rows.need(rows.number(row["rating"]), "rating is not a number"))


def credit(row: rows.Row) -> Credit:
    film_id = rows.need(rows.integer(row["id"]), "id is not an integer")
    return Credit(film_id, listed(row["cast"] or "[]", "cast"))


def films_of_both_countries(films: list[Film], given: Thresholds) -> list[dict[str, object]]:
    chosen = [
        film
        for film in films
        if given.from_year <= film.released.year <= given.to_year
        and {given.country, given.partner} <= set(film.countries)
    ]
    chosen.sort(key=lambda film: (film.title, film.genres, film.film_id))
    return [{"title": film.title, "genres": film.genres} for film in chosen]


def within_range(amount: Fraction) -> bool | None:
    """Amounts have 32 digits before the point and 6 after it; None: this one does not fit."""
    return amount == 0 or Fraction(1, 2_000_000) <= abs(amount) < 10**32 or None


def biggest_budgets(films: list[Film], given: Thresholds) -> list[dict[str, object]]:
    totals: dict[str, Fraction] = defaultdict(Fraction)
    for film in films:
        if len(film.countries) == 1:
            totals[film.countries[0]] += film.budget
    best = sorted(totals.items(), key=lambda total: (-total[1], total[0]))
    return [
        {"country": country, "budget": float(budget)}
        for country, budget in best[: given.top_countries]
    ]


def chosen_films(films: list[Film], given: Thresholds) -> list[Film]:
    return [
        film
        for film in films
        if given.country in film.countries and film.released.year >= given.since_year
    ]


def best_and_worst_rated(
    films: list[Film], ratings: list[Rating], given: Thresholds
) -> list[dict[str, object]]:
    stars: dict[int, list[Fraction]] = defaultdict(list)
    for rating in ratings:
        stars[rating.film_id].append(rating.stars)
    # Rows that share id and title have the same ratings, so repeating them changes no mean.
    means = sorted(
        {
            (film.film_id, film.title, rows.mean(stars[film.film_id]))
            for film in chosen_films(films, given)
            if film.film_id in stars
        }
    )
    # max and min keep the first of equals, which is the one with the lowest id.
    best = max(means, key=lambda rated: rated[2], default=None)
    worst = min(means, key=lambda rated: rated[2], default=None)
    return [rated_row("MAX", best), rated_row("MIN", worst)]


def rated_row(kind: str, rated: tuple[int, str, Fraction] | None) -> dict[str, object]:
    if rated is None:
        return {"kind": kind, "title": None, "rating": None}
    return {"kind": kind, "title": rated[1], "rating": float(rated[2])}


def busiest_actors(
    films: list[Film], credits_rows: list[Credit], given: Thresholds
) -> list[dict[str, object]]:
    film_rows = Counter(film.film_id for film in chosen_films(films, given))
    appearances: Counter[str] = Counter()
    for credit in credits_rows:
        for actor in credit.actors:
            appearances[actor] += film_rows[credit.film_id]
    ranked = sorted((-count, actor) for actor, count in appearances.items() if count)
    return [{"actor": actor, "films": -count} for count, actor in ranked[: given.top_actors]]


def returns_by_sentiment(films: list[Film], given: Thresholds) -> list[dict[str, object]]:
    ratios: dict[str, list[Fraction]] = {"POSITIVE": [], "NEGATIVE": []}
    for film in films:
        if film.budget and film.revenue:
            side = "POSITIVE" if rows.polarity(film.overview) >= given.positive_from else "NEGATIVE"
            ratios[side].append(film.revenue / film.budget)
    return [
        {"sentiment": side, "mean_ratio": float(rows.mean(found)) if found else None}
        for side, found in ratios.items()
    ]
