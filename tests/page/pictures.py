"""Makes the pictures of the README from a real cluster under chaos: `make screenshots`.

python -m tests.page.pictures
"""

import math
import subprocess
import tempfile
from datetime import date, timedelta
from pathlib import Path

from caudal.store import open_store
from tests.acceptance.cluster import CAUDAL
from tests.harness.browser import Browser, browsing
from tests.harness.page_cluster import PageCluster, job_of, page_cluster
from tests.harness.series_world import World

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZE = (1280, 900)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        data = folder / "books"
        command = [*CAUDAL, "generate", "books", "--scale", "0.02", "--out", str(data)]
        subprocess.run(command, check=True)
        with page_cluster(folder) as place, browsing(folder / "browser") as browser:
            browser.look(*SIZE)
            _enter(browser, place)
            _under_chaos(browser, place, data)


def _enter(browser: Browser, place: PageCluster) -> None:
    browser.open(f"{place.url}/#/jobs")
    browser.run("sessionStorage.setItem('caudal-token', arguments[0])", place.token)
    browser.reload()
    browser.shows("There is no job yet")


def _under_chaos(browser: Browser, place: PageCluster, data: Path) -> None:
    words = ["--token-file", str(place.folder / "token")]
    place.submit()
    with subprocess.Popen(
        place.cluster.submit("books", data, *words),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as client:  # fmt: skip
        job = job_of(client)
        browser.open(f"{place.url}/#/cluster")
        for name in ("worker-1", "medic-3"):
            browser.click(f"button[aria-label='kill {name}']")
            browser.shows("recovers")
        browser.wait("return (document.body.innerText.match(/well after/g) || []).length === 2")
        browser.wait("return document.querySelectorAll('.spark path[d*=L]').length > 3")
        browser.wait("return !/starting|never/.test(document.querySelector('table').innerText)")
        browser.picture(IMAGES / "cluster.png")
        client.communicate()
        assert client.returncode == 0
    browser.open(f"{place.url}/#/jobs/{job}?query=q4&as=chart")
    browser.find(".bars .bar, .plot canvas")
    browser.find("canvas.timeline")
    browser.find(".plan svg")
    browser.picture(IMAGES / "job.png")
    browser.run("document.querySelector('[aria-label=plan]').scrollIntoView()")
    browser.picture(IMAGES / "plan.png")
    browser.open(f"{place.url}/#/jobs")
    browser.shows("all_films")
    browser.picture(IMAGES / "jobs.png")
    _dataset(browser, place, data)
    _sql(browser, data)
    _series(browser, place.folder)


def _dataset(browser: Browser, place: PageCluster, data: Path) -> None:
    where = ["--gateway", place.url, "--token-file", str(place.folder / "token")]
    load = [*CAUDAL, "load", "books", "--data", str(data), "--dataset", "library", *where]
    subprocess.run(load, check=True)
    browser.open(f"{place.url}/#/datasets/eva%2Flibrary?table=reviews")
    browser.shows("First rows")
    browser.find(".bins rect")
    browser.picture(IMAGES / "dataset.png")


def _series(browser: Browser, folder: Path) -> None:
    """A series of some years; the second version revises one of them."""
    world, store = World(folder), folder / "series"
    days = [date(2021, 1, 1) + timedelta(days=number) for number in range(1400)]
    for version, shift in ((1, 0.0), (2, 6.0)):
        rows = [
            (str(day), _value(number, shift if day.year == 2023 else 0.0), 0.5)
            for number, day in enumerate(days[: 1100 + 150 * version])
        ]
        world.run(open_store(str(store)), world.source(f"v{version}", rows))
    command = [*CAUDAL, "ui", "--series", str(store), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        browser.open(address)
        browser.find(".plot canvas")
        browser.run("location.hash = '#/series?as_of=1'")
        browser.shows("Revisions since version 1")
        browser.picture(IMAGES / "series.png")
        process.terminate()


def _value(number: int, shift: float) -> float:
    return round(100 + 0.03 * number + 12 * math.sin(number / 58) + shift, 2)


def _sql(browser: Browser, data: Path) -> None:
    command = [*CAUDAL, "ui", "books", "--data", str(data), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        browser.open(process.stdout.readline().strip())
        browser.find(".editor")
        browser.click("button.main")
        browser.shows("Answer")
        browser.find(".plan svg")
        browser.picture(IMAGES / "sql.png")
        process.terminate()


if __name__ == "__main__":
    main()
