"""Small files of books with many batches of reviews, and clusters to send them to."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.memory_cluster import Cluster, cluster

import caudal
from caudal.model import ParameterValue
from caudal.results.answers import Answers

PARAMETERS: dict[str, ParameterValue] = {"min_reviews": 3, "min_decades": 1}
BATCH_BYTES = 4096


@pytest.fixture(scope="session")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 40 books in two batches, and about 20 batches of reviews."""
    folder = tmp_path_factory.mktemp("books")
    titles = [f"Distributed Book, {number}" for number in range(40)]
    publisher = "A Press with a Long Name, " * 4
    with (folder / "books_data.csv").open("w") as file:
        file.write("Title,authors,publisher,publishedDate,categories\n")
        for number, title in enumerate(titles):
            kind = ("Computers", "Fiction")[number % 2]
            written = f'"{title}","[\'Ann\', \'Bob\']","{publisher}"'
            file.write(f"{written},{1990 + number % 20},['{kind}']\n")
    words = ["a wonderful tale", 'it said "terrible" twice', "two\nlines of it", "dull, and long"]
    with (folder / "Books_rating.csv").open("w") as file:
        file.write("Id,Title,review/score,review/text\n")
        for number in range(1200):
            text = words[number * 7 % 4].replace('"', '""')
            file.write(f'{number},"{titles[number * 13 % 40]}",{number % 5 + 1}.0,"{text}"\n')
        file.write('9,"Distributed Book, 1",none,so\n')
    return folder


@pytest.fixture(scope="session")
def expected(books: Path) -> Answers:
    """What the embedded engine says."""
    return caudal.run("books", books, parameters=PARAMETERS)


@pytest.fixture(scope="module")
def one() -> Iterator[Cluster]:
    """A cluster with one gateway, shared by the tests of a module that do it no harm."""
    with cluster() as found:
        yield found


@pytest.fixture
def two() -> Iterator[Cluster]:
    """A cluster with two gateways, for one test."""
    with cluster(2) as found:
        yield found


def check(answers: Answers, expected: Answers) -> None:
    assert list(answers) == list(expected)
    for name, result in expected.items():
        assert answers[name].table.equals(result.table), name
        assert answers[name].title == result.title
    assert answers.rejects.counts() == expected.rejects.counts()
