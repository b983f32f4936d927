"""Datasets, SQL and series in a real Chromium; a running job; a gateway that dies; the keyboard."""

import os
import signal
import subprocess

import httpx

from caudal.cluster.folder import Cluster
from caudal.process.records import read_record
from tests.harness.accessibility import serious
from tests.harness.browser import Browser, downloaded
from tests.harness.page_cluster import FILMS, LONG, RIGHT_TO_LEFT, SCRIPT, PageCluster, job_of
from tests.harness.page_keys import CONTROL, DROP, ENTER, tab_to
from tests.harness.waiting import until
from tests.page.conftest import LONG_QUERY

EDITOR = "document.querySelector('.editor').shadowRoot.querySelector('.cm-content')"
# Holds the second part of a file until its load is cancelled, and notes its path.
HOLD = """
const send = window.fetch;
window.fetch = (path, init) => {
  if (!String(path).includes('/records/1')) return send(path, init);
  window.held = new URL(path, location).pathname;
  return new Promise((_, stopped) => init.signal.addEventListener('abort',
    () => stopped(new DOMException('stopped', 'AbortError'))));
};
"""


def type_sql(browser: Browser, sql: str) -> None:
    browser.wait(
        f"const e = document.querySelector('.editor'); return e && e.shadowRoot && {EDITOR}"
    )
    browser.run(f"{EDITOR}.focus()")
    browser.press_with(CONTROL, "a")
    browser.press(*sql)


def test_dropped_files_become_versions(browser: Browser, place: PageCluster, dataset: str) -> None:
    browser.open(f"{place.url}/#/datasets")
    browser.shows("films 4")
    browser.click("td a[href$='eva%2Fshelf']")  # other tests make datasets, too
    for words in ("of eva", "4 rows", LONG, RIGHT_TO_LEFT, SCRIPT, "histogram", "create"):
        browser.shows(words)
    browser.find(".bins rect")
    rows = 'id,title,year,score\n5,Fifth,2005,9\n6,"Two\nlines",2006,4\ny,Bad,2000,1\n'
    browser.run(DROP, "more-films.csv", rows)
    browser.shows("version 2 has 2 rows of it, 1 rejected")
    browser.shows("6 rows")
    browser.run(DROP, "again.csv", FILMS)  # its digest is that of the command line
    browser.shows("nothing to load: version 1 loaded it")
    browser.run(DROP, "other.csv", "id;title;year;score\n7;Seven;2007;7\n8;Eight;2008;8\n")
    browser.shows("semicolons")
    browser.push("rejects 2")
    browser.wait("return document.body.innerText.includes('id is not a number')")
    known = ("400",)  # the file with semicolons
    assert [one for one in browser.errors() if not any(word in one for word in known)] == []


def test_a_load_is_cancelled(browser: Browser, place: PageCluster, dataset: str) -> None:
    browser.open(f"{place.url}/#/datasets/eva%2Fshelf")
    browser.find(".drop")
    browser.run(HOLD)
    make = (
        "const [name] = arguments, text = 'id,title,year,score\\n' + '1,x,2000,1\\n'.repeat(9e5);"
    )
    browser.run(make + DROP.replace("const [name, text] = arguments,", "const"), "large.csv")
    browser.shows("sending 8.0 MB")
    browser.push("cancel")
    browser.shows("cancelled")
    headers = {"authorization": f"Bearer {place.token}"}
    # Not the newest job: the page asks for profiles of columns, and these are jobs, too.
    job = browser.wait("return window.held").split("/")[2]
    until(
        lambda: (
            (httpx.get(f"{place.url}/jobs/{job}", headers=headers).json()["outcome"] or {}).get(
                "state"
            )
            == "cancelled"
        )
    )


def test_sql_over_a_dataset_and_over_results(
    browser: Browser, place: PageCluster, dataset: str, job: str
) -> None:
    browser.open(f"{place.url}/#/sql?over=dataset:{dataset}")
    browser.shows("shelf · version")
    type_sql(browser, "SELECT nothing FROM films")
    browser.push("run")
    browser.shows("line 1: SELECT nothing FROM films")
    marked = "document.querySelector('.editor').shadowRoot.querySelector('.cm-mistake')"
    browser.wait(f"return {marked} && {marked}.innerText === 'nothing'")
    type_sql(browser, "SELECT title, score FROM films WHERE id < 5 AND score > $least ORDER BY 2")
    browser.write(".sqlpage input", "6")
    browser.push("run")
    browser.shows("3 rows")
    browser.shows(SCRIPT)
    browser.find(".plan svg")
    browser.push("chart")
    browser.find(".bars .bar")
    browser.push("CSV")
    assert len(downloaded(browser, "sql.csv").read_text().splitlines()) == 4
    browser.open(f"{place.url}/#/sql?over=job:{job}")
    browser.shows("results of")
    type_sql(browser, "SELECT decade, films * 2 AS twice FROM by_decade ORDER BY decade")
    browser.push("run")
    browser.shows("twice")
    browser.shows("2 rows")


def test_a_job_is_watched_while_it_runs(browser: Browser, place: PageCluster) -> None:
    words = ["--file", "films=-", "--token-file", str(place.folder / "token")]
    command = place.cluster.submit(str(place.folder / "films"), place.folder / "data", *words)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdin is not None
        client.stdin.write(FILMS)
        client.stdin.flush()
        browser.open(f"{place.url}/#/jobs/{job_of(client)}")
        browser.shows("running")
        browser.reload()
        browser.shows("running")
        client.stdin.close()
        browser.shows("done")
        browser.shows(SCRIPT)
        assert client.wait() == 0


def test_a_gateway_dies_and_the_page_goes_on(
    browser: Browser, place: PageCluster, job: str
) -> None:
    """Medics are stopped meanwhile, so that nobody brings the gateway back at once."""
    cluster = Cluster.open(place.folder / "cluster")
    records = {one.name: read_record(cluster.run_folder, one.name) for one in cluster.here}
    medics = [one.pid for name, one in records.items() if one and name.startswith("medic")]
    gateway = records["gateway-1"]
    assert gateway is not None
    browser.open(f"{place.url}/#/jobs")
    browser.shows(job[:12])
    for pid in medics:
        os.kill(pid, signal.SIGSTOP)
    try:
        os.kill(gateway.pid, signal.SIGKILL)
        browser.shows(f"served by 127.0.0.1:{place.cluster.port + 2}")
        browser.run("location.hash = arguments[0]", f"#/jobs/{job}?query=all_films")
        browser.shows(SCRIPT)
        assert "no gateway answers" not in browser.text()
        asked = (
            "fetch(arguments[0], {method: 'POST', body: '{}'})"
            ".then((answer) => arguments[1](answer.status), () => arguments[1](0))"
        )
        other = f"http://127.0.0.1:{place.cluster.port + 2}/jobs/{job}/sql"
        script = {"script": asked, "args": [other]}
        assert browser.call("POST", "execute/async", script) == 401, "not of another site"
        stolen = "fetch('http://127.0.0.1:1/').then(() => arguments[0](1), () => arguments[0](0))"
        assert browser.call("POST", "execute/async", {"script": stolen, "args": []}) == 0
        assert any("Content Security Policy" in one for one in browser.errors())
    finally:
        for pid in medics:
            os.kill(pid, signal.SIGCONT)
    until(lambda: _answers(place.url))


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz").is_success
    except httpx.TransportError:
        return False


def test_a_local_dataset_and_its_series(window: Browser, local: str) -> None:
    window.look(1400, 1000)
    window.open(local.replace("#/sql", "#/tables"))
    window.shows("histogram")
    window.errors()
    window.run(DROP, "films-2.csv", "id,title,year,score\n9,Ninth,2009,9\n")
    window.shows("version 2 has 1 row of it")
    window.shows("5 rows")
    assert serious(window) == []
    window.run("location.hash = '#/series'")
    window.shows("1 stale")
    window.shows("1 fresh")
    window.find(".plot canvas")
    window.run("location.hash = '#/series?as_of=1'")
    window.shows("Revisions since version 1")
    window.shows("99")
    window.shows("95")
    assert serious(window) == []
    window.look(400, 900, dark=True)
    assert serious(window) == []
    window.is_within(400)
    window.look(1400, 1000)
    assert window.errors() == []


def test_every_page_is_accessible_and_as_narrow_as_a_phone(
    browser: Browser, place: PageCluster, job: str, dataset: str
) -> None:
    shown = {
        "#/jobs": job[:12],
        f"#/jobs/{job}": "Plan of",
        f"#/jobs/{job}?query=by_decade&as=chart": "Plan of",
        f"#/jobs/{job}?query={LONG_QUERY}": LONG,
        "#/datasets": "shelf",
        "#/datasets?new=books": "Books_rating.csv",
        "#/datasets/eva%2Fshelf": "First rows",
        f"#/sql?over=dataset:{dataset}": "version",
        "#/cluster": "worker-1",
    }
    for page, words in shown.items():
        browser.open(f"{place.url}/{page}")
        browser.shows(words)
        for dark in (False, True):
            browser.look(1280, 900, dark=dark)
            assert serious(browser) == [], page
        for dark in (False, True):
            browser.look(400, 900, dark=dark)
            assert serious(browser) == [], page
            browser.is_within(400)
        browser.look(1280, 900)
    inside = (
        "const b = document.querySelector('button[aria-label=\"freeze gateway-1\"]')"
        ".getBoundingClientRect(); return b.right <= innerWidth && b.left >= 0"
    )
    browser.wait(inside)


def test_text_from_right_to_left_stays_in_sight_on_a_phone(
    browser: Browser, place: PageCluster, job: str
) -> None:
    browser.look(400, 900)
    browser.open(f"{place.url}/#/jobs/{job}?query=all_films")
    browser.shows(RIGHT_TO_LEFT)
    place_of = (
        "const all = [...document.querySelectorAll('.virtual .clip')];"
        "const box = all.find(e => e.innerText === arguments[0]).getBoundingClientRect();"
        "return [box.left, box.right]"
    )
    left, right = browser.run(place_of, RIGHT_TO_LEFT)
    browser.look(1400, 1000)
    assert 0 <= left < right <= 400


def test_datasets_and_sql_by_keyboard_alone(
    browser: Browser, place: PageCluster, dataset: str
) -> None:
    browser.open(f"{place.url}/#/datasets")
    browser.shows("shelf")

    tab_to(browser, "(e.getAttribute('href') || '').startsWith('#/datasets/')")
    browser.press(ENTER)
    browser.shows("First rows")
    tab_to(browser, "e.innerText.includes('choose files')")
    tab_to(
        browser, "e.getAttribute('aria-pressed') === 'false' && e.innerText.startsWith('rejects')"
    )
    browser.press(ENTER)
    browser.wait("return location.hash.includes('table=rejects')")
    browser.open(f"{place.url}/#/sql?over=dataset:{dataset}")
    browser.shows("version")
    browser.wait(f"const e = document.querySelector('.editor'); return e.shadowRoot && {EDITOR}")
    tab_to(browser, "e.classList.contains('editor')")
    browser.press_with(CONTROL, ENTER)
    browser.shows("its job")
    tab_to(browser, "e.innerText === 'chart'")
    browser.press(ENTER)
    browser.find(".bars .bar, .plot canvas, .columns-chart")
