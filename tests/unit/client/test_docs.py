"""The examples in the documentation of the client run as they stand."""

import doctest
import re
from pathlib import Path

import pytest
from tests.harness.memory_cluster import Cluster

import caudal.client.addresses
import caudal.client.client
import caudal.client.events
import caudal.client.rows

HOWTO = Path(__file__).parents[3] / "docs" / "howto" / "client.md"


@pytest.fixture
def example_data(tmp_path: Path) -> Path:
    header = (
        "id,title,genres,production_countries,spoken_languages,release_date,budget,revenue,overview"
    )
    film = "{0},Film,[],\"[{{'name': 'Chile'}}]\",[],2001-01-01,1,2,good\n"
    films = "".join(film.format(number) for number in range(3))
    (tmp_path / "movies_metadata.csv").write_text(f"{header}\n{films}")
    return tmp_path


def test_the_docstrings(one: Cluster, example_data: Path) -> None:
    more = {"example_gateway": one.gateway, "example_data": example_data}
    outcome = doctest.testmod(caudal.client.client, extraglobs=more)
    assert outcome.attempted >= 8
    assert outcome.failed == 0


@pytest.mark.parametrize(
    "module", [caudal.client.addresses, caudal.client.events, caudal.client.rows]
)
def test_the_small_ones(module: object) -> None:
    outcome = doctest.testmod(module)  # type: ignore[arg-type]
    assert outcome.attempted
    assert outcome.failed == 0


def test_the_howto(one: Cluster, books: Path) -> None:
    """Every block of Python, one after the other, as a reader would run them."""
    names = {"example_gateway": one.gateway, "example_data": books}
    blocks = re.findall(r"```python\n(.*?)```", HOWTO.read_text(), re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        exec(compile(block, str(HOWTO), "exec"), names)
