"""The page by keyboard alone: where Tab leads, and whether the focus is seen. Dropped files."""

from tests.harness.browser import Browser
from tests.harness.waiting import until

ENTER, TAB, SPACE, DOWN, RIGHT, CONTROL = "\ue007", "\ue004", " ", "\ue015", "\ue014", "\ue009"
MOST_STOPS = 300
MOST_SWEEPS = 3
DROP = """
const [name, text] = arguments, given = new DataTransfer();
given.items.add(new File([text], name));
const event = new DragEvent('drop', {dataTransfer: given, bubbles: true, cancelable: true});
document.querySelector('.drop').dispatchEvent(event);
"""
# What can be reached: everything that acts or scrolls, in sight, and not one of a group whose other
# members the arrows reach.
_ALL = """
const kinds = 'a[href], button, input, select, summary, [tabindex="0"], .editor';
const all = [...document.querySelectorAll(kinds)].filter(
  e => !e.disabled && e.getClientRects().length && e.getAttribute('tabindex') !== '-1');
"""
_STOP = """
const e = document.activeElement, again = e.dataset.met === '1';
e.dataset.met = '1';
const drawn = e.matches('.plan .node') ? e.querySelector('rect') : null;
const seen = e.shadowRoot ? e.shadowRoot.querySelector('.cm-editor') : e;
const style = getComputedStyle(drawn || seen);
const isSeen = drawn ? style.strokeWidth === '3px'
  : style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
return [again, e === document.body || isSeen, e.outerHTML.slice(0, 100)];
"""


def tab_to(browser: Browser, found: str) -> None:
    """Press Tab until the focus is on an element `e` of which this is true."""

    def reached() -> bool:
        browser.press(TAB)
        return bool(browser.run(f"const e = document.activeElement; return {found}"))

    until(reached)


def unreached(browser: Browser) -> list[str]:
    """Press Tab through the whole page; return what was not reached, or without a visible focus.

    What a page loads or redraws behind the focus is reached by another sweep.
    """
    missed: list[str] = []
    for _ in range(MOST_SWEEPS):
        missed = _missed(browser)
        if not missed:
            break
    return missed


def _missed(browser: Browser) -> list[str]:
    browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    browser.run("for (const e of document.querySelectorAll('[data-met]')) delete e.dataset.met")
    wrong = []
    for _ in range(MOST_STOPS):
        browser.press(TAB)
        again, is_seen, words = browser.run(_STOP)
        if not is_seen:
            wrong.append(f"no focus is seen: {words}")
        if again:
            break
    missed = browser.run(
        _ALL + "return all.filter(e => e.dataset.met !== '1').map(e => e.outerHTML.slice(0, 100))"
    )
    return [*wrong, *(f"not reached: {one}" for one in missed)]
