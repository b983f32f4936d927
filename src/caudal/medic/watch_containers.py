"""The conditions of a cluster's containers, followed by one thread.

The thread lists the containers, then reads the engine's events, and begins anew every few seconds,
so that a lost event is made good. A medic's loop never waits for the engine.
"""

import json
import logging
import threading
import time
from collections.abc import Iterable

from caudal.errors import EngineError
from caudal.medic.containers import Condition, inspected, with_event
from caudal.medic.engine import DockerEngine
from caudal.process.logs import fields

_ROUND_SECONDS = 10.0
_PAUSE_SECONDS = 1.0
_log = logging.getLogger(__name__)


class ContainerWatch:
    """Conditions by name of container. `now` is what is known, without asking."""

    def __init__(self, engine: DockerEngine, prefix: str) -> None:
        self._engine = engine
        self._prefix = prefix
        self._known: dict[str, Condition] = {}
        self._listed = threading.Event()
        self._away = ""
        threading.Thread(target=self._follow, name="containers", daemon=True).start()

    def now(self) -> dict[str, Condition] | None:
        """Return the conditions; None before the first list."""
        return self._known if self._listed.is_set() else None

    def _follow(self) -> None:
        while True:
            try:
                self._round()
                self._say("")
            except EngineError as error:
                self._say(str(error))
                time.sleep(_PAUSE_SECONDS)
            except Exception as error:  # cut off, or unknown: this thread must not end
                self._say(f"an answer of the Docker engine cannot be read: {error!r}")
                time.sleep(_PAUSE_SECONDS)

    def _round(self) -> None:
        """Follow one stream of events to its end. It begins before the list, so none is missed."""
        since = time.time()
        self._known = list_conditions(self._engine, self._prefix)
        self._listed.set()
        self._say("")
        filters = json.dumps({"type": ["container"]})
        query = {"since": f"{since:.3f}", "until": f"{since + _ROUND_SECONDS:.3f}"}
        for line in self._engine.lines("/events", {**query, "filters": filters}, None):
            self._take(line)

    def _take(self, line: bytes) -> None:
        event = json.loads(line)
        if event["Actor"]["Attributes"]["name"].startswith(self._prefix):
            self._known = with_event(self._known, event)  # whole: other threads see one state

    def _say(self, reason: str) -> None:
        if reason and reason != self._away:
            _log.error("containers cannot be watched", extra=fields(reason=reason))
        self._away = reason


def list_conditions(engine: DockerEngine, prefix: str) -> dict[str, Condition]:
    """Ask the engine for the conditions of all containers whose name begins so."""
    found = engine.get("/containers/json", {"all": "true"})
    names = [
        name.removeprefix("/")
        for one in (found if isinstance(found, list) else ())
        for name in one["Names"]
        if name.startswith(f"/{prefix}")
    ]
    return dict(_inspected(engine, names))


def _inspected(engine: DockerEngine, names: Iterable[str]) -> Iterable[tuple[str, Condition]]:
    for name in names:
        answer = engine.get(f"/containers/{name}/json")
        if isinstance(answer, dict):  # it may have been removed meanwhile
            yield name, inspected(answer)
