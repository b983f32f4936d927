"""The page in a real Chromium, against a real cluster with tokens, in one story after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.browser import Browser, browsing, downloaded, require_browser
from tests.harness.page_cluster import LONG, RIGHT_TO_LEFT, SCRIPT, PageCluster, page_cluster
from tests.harness.seaweed import refuse
from tests.harness.waiting import until

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
TAB, ENTER, RIGHT = "\ue004", "\ue007", "\ue014"
PAGES = ["#/jobs", "#/jobs/JOB", "#/jobs/JOB?query=by_decade&as=chart", "#/cluster"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageCluster]:
    require_browser()
    with page_cluster(tmp_path_factory.mktemp("page")) as found:
        yield found


@pytest.fixture(scope="module")
def job(place: PageCluster) -> str:
    return place.submit()


@pytest.fixture(scope="module")
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


def test_a_wrong_token_is_asked_for_again(window: Browser, place: PageCluster, job: str) -> None:
    window.open(f"{place.url}/#/jobs")
    window.run("sessionStorage.clear()")
    window.reload()
    window.shows("caudal token new")
    window.write("input[name=token]", "a-token-that-nobody-knows")
    window.press(ENTER)
    window.shows("does not know that token")
    window.write("input[name=token]", place.token)
    window.press(ENTER)
    window.shows(job[:12])
    assert place.token not in window.run("return document.documentElement.outerHTML")
    assert window.run("return document.cookie") == ""


def test_a_job_is_seen_to_its_end_and_its_data_is_only_text(
    browser: Browser, place: PageCluster, job: str
) -> None:
    browser.open(f"{place.url}/#/jobs/{job}")
    for words in ("done", SCRIPT, RIGHT_TO_LEFT, LONG, "id is not a number", "Plan of all_films"):
        browser.shows(words)
    browser.wait("return document.querySelector('canvas.timeline')")
    assert browser.run("return document.title") != "taken"
    assert browser.run("return document.querySelectorAll('main script').length") == 0
    assert browser.errors() == []


def test_rows_are_sorted_filtered_and_charted(
    browser: Browser, place: PageCluster, job: str
) -> None:
    browser.open(f"{place.url}/#/jobs/{job}?query=all_films")
    browser.shows(LONG)
    browser.click(".virtual th:nth-child(4) button")
    browser.wait(
        "const row = document.querySelector('.virtual tbody tr:nth-child(2)');"
        "return row && row.innerText.includes('Plain')"
    )
    browser.write("input[type=search]", "2001")
    browser.wait("return document.body.innerText.includes('1 row of 4')")
    browser.open(f"{place.url}/#/jobs/{job}?query=by_decade&as=chart")
    browser.wait("return document.querySelector('.plot canvas')")
    browser.reload()  # the view is in the address
    browser.wait("return document.querySelector('.plot canvas')")
    assert browser.errors() == []


def test_a_report_shows_the_job_without_any_server(
    browser: Browser, place: PageCluster, job: str
) -> None:
    browser.open(f"{place.url}/#/jobs/{job}")
    browser.shows("id is not a number")
    browser.wait(
        "return document.body.innerText.includes('worker-')||document.querySelector('canvas')"
    )
    browser.run(
        "[...document.querySelectorAll('button')].find(b=>b.innerText==='save report').click()"
    )
    report = downloaded(browser, f"caudal-{job}.html")
    assert "://" not in report.read_text().replace("http://www.w3.org/", "")
    browser.open(report.as_uri())
    for words in (SCRIPT, "id is not a number", "Plan of all_films", "Timeline"):
        browser.shows(words)
    assert browser.run("return document.title") == f"films {job}"
    assert browser.errors() == []


def test_an_answer_is_downloaded(browser: Browser, place: PageCluster, job: str) -> None:
    browser.open(f"{place.url}/#/jobs/{job}?query=by_decade")
    browser.shows("decade")
    browser.run("[...document.querySelectorAll('button')].find(b=>b.innerText==='CSV').click()")
    lines = downloaded(browser, "by_decade.csv").read_text().splitlines()
    assert lines[0] == "decade,films,mean"
    assert len(lines) == 3


def test_a_worker_is_killed_by_the_button_and_returns(
    browser: Browser, place: PageCluster, job: str
) -> None:
    browser.open(f"{place.url}/#/cluster")
    browser.click("button[aria-label='kill worker-1']")
    browser.shows("killed worker-1")
    browser.shows("well after")
    another = place.submit()
    browser.open(f"{place.url}/#/jobs/{another}")
    browser.shows(SCRIPT)


def test_the_page_goes_on_after_its_gateway_was_killed(
    browser: Browser, place: PageCluster, job: str
) -> None:
    browser.open(f"{place.url}/#/cluster")
    browser.click("button[aria-label='kill gateway-1']")
    browser.wait(
        "const rows = [...document.querySelectorAll('tr')];"
        "const row = rows.find(one => one.innerText.startsWith('gateway-1'));"
        "return row && row.innerText.includes('healthy') && row.cells[3].innerText !== '1'"
    )
    assert not browser.run("return document.body.innerText.includes('trying again')")


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_wider_than_a_phone(
    browser: Browser, place: PageCluster, job: str, page: str
) -> None:
    browser.look(400, 900, dark=True)
    browser.open(f"{place.url}/{page.replace('JOB', job)}")
    browser.shows("Caudal")
    browser.find("main .card")
    assert browser.run("return document.documentElement.scrollWidth") <= 400


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("dark", [False, True])
def test_accessibility(
    browser: Browser, place: PageCluster, job: str, page: str, dark: bool
) -> None:
    if not AXE.exists():
        refuse("axe-core is not installed: npm ci in web/")
    browser.look(1400, 1000, dark=dark)
    browser.open(f"{place.url}/{page.replace('JOB', job)}")
    browser.find("main .card")
    browser.run(AXE.read_text())
    found = browser.call(
        "POST",
        "execute/async",
        {"script": "axe.run().then(r=>arguments[0](r.violations))", "args": []},
    )
    bad = [
        (one["id"], [node["html"][:120] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert bad == []


def test_by_keyboard_alone(browser: Browser, place: PageCluster, job: str) -> None:
    browser.open(f"{place.url}/#/jobs")
    browser.shows(job[:12])
    focused = "return document.activeElement.getAttribute('href') || ''"

    def reached() -> bool:
        browser.press(TAB)
        return str(browser.run(focused)).startswith("#/jobs/") and len(browser.run(focused)) > 8

    until(reached)
    browser.press(ENTER)
    browser.shows("Answers")

    def at_tab() -> bool:
        browser.press(TAB)
        return bool(browser.run("return document.activeElement.getAttribute('role') === 'tab'"))

    until(at_tab)
    browser.press(RIGHT)
    browser.wait("return location.hash.includes('query=by_decade')")
    browser.shows("decade")
