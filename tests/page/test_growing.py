"""Rows of an answer that grows, in a real Chromium: seen while the job runs, then replaced."""

import subprocess

from tests.harness.browser import Browser
from tests.harness.page_cluster import PageCluster, job_of

MANY = "".join(f"{n},Film {n},{1990 + n % 20},5\n" for n in range(2000))
LAST = "9999,Last,2015,9\n"
REGION = "document.querySelector('[aria-label=\"by_decade so far\"]')"


def test_rows_grow_and_the_answer_replaces_them(browser: Browser, place: PageCluster) -> None:
    """The input stays open until the rows so far were seen, so the job cannot end before."""
    words = ["--file", "films=-", "--batch-size", "4KiB"]
    token = ["--token-file", str(place.folder / "token")]
    command = place.cluster.submit(str(place.folder / "films"), place.folder / "data", *words)
    with subprocess.Popen(
        [*command, *token],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdin is not None
        client.stdin.write("id,title,year,score\n" + MANY)
        client.stdin.flush()
        browser.open(f"{place.url}/#/jobs/{job_of(client)}?query=by_decade")
        browser.wait(f"return {REGION} && {REGION}.innerText.includes('2000')")
        seen = browser.run(f"return {REGION}.innerText")
        assert "running" in browser.text()
        assert "so far: 2 rows from" in seen
        assert "films, mean with the answer" in seen  # these columns may still change
        heads = browser.run(f"return [...{REGION}.querySelectorAll('th')].map(e => e.innerText)")
        assert heads == ["decade"]
        client.stdin.write(LAST)
        client.stdin.close()
        browser.wait("return document.querySelector('.virtual') && !" + REGION)
        browser.shows("3 rows")
        rows = "[...document.querySelectorAll('.virtual tbody tr:not(.gap)')]"
        cells = f"const cells = {rows}.map(e => e.innerText.split('\\t'));"
        loaded = f"{cells} return !cells.flat().includes('…') && cells"  # it stands for what comes
        assert browser.wait(loaded) == [
            ["1990", "1000", "5"],
            ["2000", "1000", "5"],
            ["2010", "1", "9"],
        ]
        assert client.wait() == 0
    assert browser.errors() == []
