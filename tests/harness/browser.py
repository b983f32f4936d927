"""A real Chromium, driven through chromedriver by the WebDriver protocol over loopback.

Rules
1. An empty profile, no sandbox (the tests may run as root), nothing that calls home.
2. Both processes are children of this one and are stopped by their own pids.
3. Without the packages, tests skip on a laptop and fail in CI. `make test` installs them where it
   can.
"""

import base64
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.harness.seaweed import refuse
from tests.harness.waiting import GUARD_SECONDS, until

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip


def require_browser() -> None:
    """Skip, or fail in CI, where the packages are not installed."""
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        refuse("Chromium is not installed: apt-get install chromium chromium-driver")


class BrowserError(Exception):
    """The browser refused a command: a script failed, or an element is gone or hidden."""


@dataclass(frozen=True)
class Browser:
    """One window.

    A page may be loading or redrawn at any moment. So whatever waits tries again after an error,
    and each command that looks for something and acts on it is tried again as a whole.
    """

    http: httpx.Client
    session: str
    downloads: Path

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send one WebDriver command; return its value."""
        url = f"/session/{self.session}/{path}"
        answer = self.http.request(method, url, json=body if method == "POST" else None)
        value = answer.json()["value"]
        if answer.status_code != 200:
            raise BrowserError(f"{value['error']}: {value['message']}")
        return value

    def open(self, url: str) -> None:
        self.call("POST", "url", {"url": url})

    def reload(self) -> None:
        self.call("POST", "refresh", {})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run the body of a function; return what it returns."""
        return self.call("POST", "execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, *arguments: Any) -> Any:
        """Run a script until it returns something true."""
        return until(lambda: self.run(script, *arguments), BrowserError)

    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def shows(self, words: str) -> None:
        """Wait until the words are on the page."""
        self.wait("return document.body.innerText.includes(arguments[0])", words)

    def find(self, selector: str) -> dict[str, str]:
        """Wait for an element, and return it."""
        found: dict[str, str] = self.wait("return document.querySelector(arguments[0])", selector)
        return found

    def is_within(self, width: int) -> None:
        """Wait until nothing of the page is wider: charts follow a new width a little later."""
        self.wait("return document.documentElement.scrollWidth <= arguments[0]", width)

    def click(self, selector: str) -> None:
        """Click as a person does, once it is there and enabled."""
        self._on(
            selector,
            "const e = arguments[0]; e.scrollIntoView({block:'center'}); return !e.disabled",
            "click",
            {},
        )

    def push(self, words: str) -> None:
        """Click the button with these words, once it is there and enabled."""
        self.wait(
            "const all = [...document.querySelectorAll('button:enabled')];"
            "const found = all.find(b => b.innerText.trim() === arguments[0]);"
            "found?.click(); return Boolean(found)",
            words,
        )

    def write(self, selector: str, text: str) -> None:
        """Type into a field, once it is there and enabled."""
        self._on(selector, "return !arguments[0].disabled", "value", {"text": text})

    def _on(self, selector: str, ready: str, action: str, body: dict[str, str]) -> None:
        def done() -> bool:
            found = self.find(selector)
            if not self.run(ready, found):
                return False
            self.call("POST", f"element/{found[_ELEMENT]}/{action}", body)
            return True

        until(done, BrowserError)

    def press(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        pressed = [{"type": way, "value": key} for key in keys for way in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keys", "actions": pressed}]
        self.call("POST", "actions", {"actions": actions})

    def press_with(self, held: str, key: str) -> None:
        """Press a key while another one is held."""
        ways = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)]
        pressed = [{"type": way, "value": value} for way, value in ways]
        actions = [{"type": "key", "id": "keys", "actions": pressed}]
        self.call("POST", "actions", {"actions": actions})

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window, and light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", {"features": [scheme]})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("GET", "screenshot")))

    def memory(self) -> int:
        """Return the bytes that the tab's objects take, after a collection."""
        self._command("HeapProfiler.collectGarbage", {})
        return int(self._command("Runtime.getHeapUsage", {})["usedSize"])

    def errors(self) -> list[str]:
        """Return what the page complained about since the last call."""
        found = self.call("POST", "se/log", {"type": "browser"})
        return [one["message"] for one in found if one["level"] == "SEVERE"]

    def _command(self, name: str, parameters: dict[str, Any]) -> Any:
        return self.call("POST", "goog/cdp/execute", {"cmd": name, "params": parameters})


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser with an empty profile in this folder."""
    require_browser()
    downloads = folder / "downloads"
    downloads.mkdir(parents=True)
    with (folder / "chromedriver.log").open("wb") as log:
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=log, stderr=log)
    try:
        port = until(lambda: _port(folder / "chromedriver.log"))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=GUARD_SECONDS) as http:
            session = _session(http, folder, downloads)
            try:
                yield Browser(http, session, downloads)
            finally:
                http.delete(f"/session/{session}")
    finally:
        driver.terminate()
        driver.wait()


def _port(log: Path) -> int | None:
    words = log.read_text(errors="replace").partition("started successfully on port ")[2]
    return int(words.split(".")[0]) if "." in words else None


def _session(http: httpx.Client, folder: Path, downloads: Path) -> str:
    chrome = {
        "binary": shutil.which("chromium"),
        "args": [*_OPTIONS, f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000"],
        "prefs": {"download.default_directory": str(downloads)},
    }
    wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
    answer = http.post("/session", json={"capabilities": {"alwaysMatch": wanted}})
    value = answer.json()["value"]
    assert answer.status_code == 200, value
    return str(value["sessionId"])


def downloaded(browser: Browser, name: str) -> Path:
    """Wait for a file to be saved whole."""
    path = browser.downloads / name
    until(lambda: path.exists() and path.stat().st_size)
    return path
