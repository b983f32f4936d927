"""A dataset that is made on the page, in a real Chromium."""

import httpx

from tests.harness.browser import Browser
from tests.harness.page_cluster import PageCluster
from tests.harness.page_keys import DROP, ENTER, TAB, tab_to

RATINGS = "userId,movieId,rating,timestamp\n1,10,4.5,1\n1,9,4.0,1\n2,9,x,1\n"
CREDITS = "cast,crew,id\n"


def test_a_dataset_is_made_with_a_shipped_application(browser: Browser, place: PageCluster) -> None:
    browser.open(f"{place.url}/#/datasets")
    tab_to(browser, "e.innerText === 'new dataset'")
    browser.press(ENTER)
    browser.shows("Books_rating.csv")
    browser.run(DROP, "ratings.csv", RATINGS)
    browser.shows("the dataset needs a name")
    tab_to(browser, "e.closest('label') && e.closest('label').innerText.startsWith('name')")
    browser.press(*"a name")
    browser.shows("up to 64 letters")
    browser.run("document.activeElement.select()")
    browser.press(*"cinema")
    browser.press(TAB, "m")  # the application, by its first letter
    browser.shows("movies_metadata.csv")
    browser.wait("return location.hash.includes('new=movies')")
    browser.run(DROP, "any-name.csv", RATINGS)  # its columns say which table it is for
    browser.shows("ratings: version 1 has 2 rows of it, 1 rejected")
    browser.run(DROP, "again.csv", RATINGS)
    browser.shows("nothing to load: version 1 loaded it")
    browser.run(DROP, "other.csv", CREDITS)
    browser.shows("credits: version 2 has 0 rows of it")
    headers = {"authorization": f"Bearer {place.token}"}
    made = httpx.get(f"{place.url}/datasets/cinema", headers=headers).json()
    assert (made["owner"], made["application"], made["rows"]) == ("eva", "movies", 2)
    tab_to(browser, "e.innerText === 'open cinema'")
    browser.press(ENTER)
    browser.shows("movies · of eva · version 2")
    assert browser.errors() == []


def test_a_name_that_is_taken_by_another_application(
    browser: Browser, place: PageCluster, dataset: str
) -> None:
    browser.open(f"{place.url}/#/datasets?new=movies")
    browser.write("section[aria-label='new dataset'] input", dataset.partition("/")[2])
    browser.shows("files are added to it")
    browser.run(DROP, "ratings.csv", RATINGS)
    browser.shows("shelf holds a dataset of films, not of movies")
    assert [one for one in browser.errors() if "400" not in one] == []
