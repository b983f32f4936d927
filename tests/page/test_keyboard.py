"""Every page by keyboard alone: all that acts is reached and shows its focus; strikes, series."""

from tests.harness.browser import Browser
from tests.harness.page_cluster import PageCluster
from tests.harness.page_keys import DOWN, ENTER, SPACE, tab_to, unreached


def test_all_of_every_page_is_reached_and_the_focus_is_seen(
    browser: Browser, place: PageCluster, job: str, dataset: str
) -> None:
    shown = {
        "#/jobs": job[:12],
        f"#/jobs/{job}?query=by_decade": "Rejected rows",
        "#/datasets?new=movies": "credits.csv",
        "#/datasets/eva%2Fshelf": "First rows",
        f"#/sql?over=dataset:{dataset}": "version",
        "#/cluster": "worker-1",
    }
    for page, words in shown.items():
        browser.open("about:blank")
        browser.open(f"{place.url}/{page}")
        browser.shows(words)
        if "/sql" in page:
            browser.find(".editor")
            browser.wait("return document.querySelector('.editor').shadowRoot")
        assert unreached(browser) == [], page
    hidden = "const s = new CSSStyleSheet(); s.replaceSync(arguments[0]);"
    rule = ":focus-visible { outline: none !important }"
    browser.run(f"{hidden} document.adoptedStyleSheets = [s]", rule)
    assert any("no focus is seen" in one for one in unreached(browser))


def test_the_editor_shows_its_focus_at_once(
    browser: Browser, place: PageCluster, dataset: str
) -> None:
    """In the same turn: the browser itself draws it, no script that runs later."""
    browser.open(f"{place.url}/#/sql?over=dataset:{dataset}")
    inside = "const root = document.querySelector('.editor')?.shadowRoot;"
    browser.wait(f"{inside} return root?.querySelector('.cm-content')")
    outline = "getComputedStyle(root.querySelector('.cm-editor')).outline"
    focus = "const text = root.querySelector('.cm-content'); text.blur();"
    browser.wait(f"{inside} {focus} return {outline}.includes('none')")
    drawn = browser.run(f"{inside} {focus} text.focus(); return {outline}")
    assert drawn.endswith("solid 2px")


def test_a_worker_is_killed_by_keyboard(browser: Browser, place: PageCluster) -> None:
    browser.open(f"{place.url}/#/cluster")
    browser.shows("worker-2")
    tab_to(browser, "e.getAttribute('aria-label') === 'kill worker-2' && !e.disabled")
    browser.press(SPACE)
    browser.shows("killed worker-2")
    browser.shows("well after")


def test_the_timeline_is_zoomed_by_keyboard(browser: Browser, place: PageCluster, job: str) -> None:
    browser.open(f"{place.url}/#/jobs/{job}")
    browser.find("canvas.timeline")
    tab_to(browser, "e.matches('canvas.timeline')")
    whole = "const all = [...document.querySelectorAll('button')].find(b => b.innerText === 'all');"
    assert browser.run(f"{whole} return all.disabled")
    browser.press("+")
    browser.wait(f"{whole} return !all.disabled")
    browser.press("0")
    browser.wait(f"{whole} return all.disabled")


def test_series_by_keyboard_alone(window: Browser, local: str) -> None:
    window.look(1400, 1000)
    window.open(local.replace("#/sql", "#/series"))
    window.reload()
    window.find(".plot canvas")
    assert unreached(window) == []
    tab_to(window, "e.closest('label') && e.closest('label').innerText.startsWith('beside it')")
    window.press(DOWN)
    window.shows("Revisions since version")
    assert unreached(window) == []
    tab_to(window, "e.innerText.trim() === 'change'")
    window.press(ENTER)
    window.wait(
        "return document.querySelector('th[aria-sort=ascending]').innerText.includes('change')"
    )
    window.run("location.hash = '#/tables'")
    window.shows("First rows")
    assert unreached(window) == []
