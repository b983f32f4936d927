"""The page with ten thousand jobs and a million rows, in a real Chromium: `make test-page`."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from caudal.formats import job as job_format
from caudal.formats import outputs
from caudal.formats.keys import Keys, Task, job_key
from caudal.formats.outcomes import Outcome, encode_outcome
from caudal.formats.outputs import Whose
from caudal.gateway.tokens import Tokens
from caudal.jobs import objects
from caudal.jobs.job_index import enrol
from tests.harness.browser import Browser, browsing
from tests.harness.gateway_place import REQUEST, Place, create, send
from tests.harness.gateway_server import Running, running

JOBS, ROWS, MOST_BYTES = 10_000, 1_000_000, 300 << 20


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """Ten thousand ended jobs, of which `j` has a result of a million rows."""
    with Place(tokens=Tokens()) as made:
        client = made.client(token=None)
        client.headers["host"] = "localhost"
        create(client)
        send(client, "people")
        send(client, "visits")
        made.work()
        job = objects.job_of(objects.job_bytes(made.store, "j"), "j")
        keys = Keys("j", job.run, job.request.options.group)
        result = keys.output(Task("finish", "adults"))
        made.store.delete(result)
        rows = pa.table({"name": [f"name {n}" for n in range(ROWS)], "age": list(range(ROWS))})
        whose = Whose("j", job.run, "adults")
        made.store.create(result, outputs.encode_result(whose, "Adults", rows))
        for number in range(JOBS - 1):
            copy = msgspec.structs.replace(job, id=f"copy{number:05}")
            made.store.create(job_key(copy.id), job_format.encode(copy))
            outcome = encode_outcome(Outcome("done", "", job.created + 1))
            made.store.create(Keys(copy.id, copy.run).outcome, outcome)
            enrol(made.store, copy)
        yield made


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Running]:
    with running(place) as found:
        yield found


@pytest.fixture(scope="module")
def browser(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder: Path = tmp_path_factory.mktemp("browser")
    with browsing(folder) as found:
        yield found


def test_ten_thousand_jobs_scroll(browser: Browser, server: Running) -> None:
    browser.open(f"{server.url}/#/jobs")
    browser.shows("10,000")
    browser.run("const b=document.querySelector('.virtual'); b.scrollTop=b.scrollHeight")
    browser.wait("return document.querySelector('[aria-rowindex=\"10001\"]')")
    assert browser.run("return document.querySelectorAll('tbody tr').length") < 80
    assert browser.memory() < MOST_BYTES
    assert REQUEST.application.name in browser.text()


def test_a_million_rows_scroll(browser: Browser, server: Running) -> None:
    browser.open(f"{server.url}/#/jobs/j?query=adults")
    browser.shows("1,000,000 rows")
    for share in (0.1, 0.35, 0.5, 0.77, 1.0):
        browser.run(
            "const b=document.querySelector('.virtual');"
            "b.scrollTop=arguments[0]*(b.scrollHeight-b.clientHeight)",
            share,
        )
        browser.wait(
            "const cells=[...document.querySelectorAll('.virtual tbody td.num')];"
            "const near=arguments[0]*1e6;"
            "return cells.some(c=>Math.abs(Number(c.innerText)-near)<1000)",
            share,
        )
    browser.shows("name 999999")
    assert browser.run("return document.querySelectorAll('.virtual tbody tr').length") < 80
    assert browser.memory() < MOST_BYTES
