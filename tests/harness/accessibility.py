"""What axe-core finds on a page. It comes with the packages of web/."""

from pathlib import Path

from tests.harness.browser import Browser
from tests.harness.seaweed import refuse

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


def serious(browser: Browser) -> list[tuple[str, list[str]]]:
    """Return what axe-core finds serious on the page."""
    if not AXE.exists():
        refuse("axe-core is not installed: npm install --no-save in web/")
    browser.run(AXE.read_text())
    script = "axe.run().then(r => arguments[0](r.violations))"
    found = browser.call("POST", "execute/async", {"script": script, "args": []})
    return [
        (one["id"], [node["html"][:120] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
