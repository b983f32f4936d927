"""One real cluster with tokens and one browser for all tests of the page."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import caudal
from caudal.series import ingest
from caudal.store import open_store
from tests.acceptance.cluster import CAUDAL
from tests.harness.browser import Browser, browsing, require_browser
from tests.harness.page_cluster import LONG, PageCluster, page_cluster
from tests.harness.series_world import World

LONG_QUERY = LONG.lower().replace("ä", "ae")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageCluster]:
    require_browser()
    with page_cluster(tmp_path_factory.mktemp("page")) as found:
        queries = found.folder / "films" / "queries"
        (queries / f"{LONG_QUERY}.sql").write_text(
            f'-- {LONG} {LONG}\nSELECT count(*) AS "{LONG}" FROM films\n'
        )
        yield found


@pytest.fixture(scope="session")
def job(place: PageCluster) -> str:
    return place.submit()


@pytest.fixture(scope="session")
def window(place: PageCluster) -> Iterator[Browser]:
    with browsing(place.folder / "browser") as found:
        yield found


@pytest.fixture
def browser(window: Browser, place: PageCluster, job: str) -> Browser:
    """The window, with the token, and without complaints of earlier tests."""
    window.look(1400, 1000)
    window.open(f"{place.url}/#/jobs")
    window.run("sessionStorage.setItem('caudal-token', arguments[0])", place.token)
    window.reload()
    window.shows(job[:12])
    window.errors()
    return window


@pytest.fixture(scope="session")
def dataset(place: PageCluster) -> str:
    """A dataset of the cluster with the films, loaded from the command line."""
    where = ["--gateway", place.url, "--token-file", str(place.folder / "token")]
    data = ["--data", str(place.folder / "data"), "--dataset", "shelf"]
    command = [*CAUDAL, "load", str(place.folder / "films"), *data, *where]
    subprocess.run(command, capture_output=True, check=True)
    return "eva/shelf"


@pytest.fixture(scope="session")
def ui(place: PageCluster) -> Iterator[str]:
    """The address that `caudal ui` prints."""
    data = str(place.folder / "data")
    command = [*CAUDAL, "ui", str(place.folder / "films"), "--data", data, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


@pytest.fixture(scope="session")
def local(place: PageCluster) -> Iterator[str]:
    """The address of `caudal ui` over a dataset and a store of series with a stale month."""
    films, shelf, series = place.folder / "films", place.folder / "local", place.folder / "series"
    caudal.load(str(films), data=place.folder / "data", to=str(shelf))
    write_series(place.folder, series)
    words = ["--from", str(shelf), "--series", str(series), "--port", "0"]
    with subprocess.Popen(
        [*CAUDAL, "ui", str(films), *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


def write_series(folder: Path, store: Path) -> None:
    """Three versions: the second one revises February, the third one January, and is not
    consolidated."""
    world, opened = World(folder), open_store(str(store))
    days = ["2024-01-01", "2024-01-02", "2024-02-01", "2024-02-02"]
    for name, values in (("first", [1.0, 2.0, 3.0, 4.0]), ("second", [1.0, 2.0, 3.0, 99.0])):
        world.run(
            opened, world.source(name, [(d, v, 0.5) for d, v in zip(days, values, strict=True)])
        )
    ingest(world.catalog(opened), world.config, world.source("third", [(days[0], 7.0, 0.5)]))
