"""The thread that follows containers outlives whatever an engine answers."""

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
from tests.harness.waiting import until

from caudal.medic import watch_containers
from caudal.medic.watch_containers import ContainerWatch

NAME = "caudal-worker-1"
DIED = (
    b'{"Action": "die", "timeNano": 1800000000000000000, "Actor": {"Attributes": {"name": "%s"}}}'
    % NAME.encode()
)


class OddEngine:
    """Answers oddly at first: each of these lines is one stream of events. Then it is silent."""

    def __init__(self, *streams: bytes, lists: list[object]) -> None:
        self.streams, self.lists = list(streams), lists

    def get(self, path: str, query: object = None) -> object:
        if path == "/containers/json":
            return self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        begun = "2026-11-16T12:00:01Z"
        return {"Created": begun, "State": {"Status": "running", "StartedAt": begun}}

    def lines(self, *_: object) -> Iterator[bytes]:
        yield self.streams.pop(0)
        if not self.streams:
            threading.Event().wait()  # the last one has no end


@pytest.mark.parametrize(
    "odd", [b'{"Act', b"[]", b"{}", b'{"Action": "die", "Actor": {"Attributes": {}}}', b"\xff"]
)
def test_what_cannot_be_read_is_logged_and_the_next_event_is_seen(
    odd: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watch_containers, "_PAUSE_SECONDS", 0.0)
    engine = OddEngine(odd, DIED, lists=[[{"names": "?"}], [{"Names": [f"/{NAME}"]}]])
    watch = ContainerWatch(cast(Any, engine), "caudal-")
    until(lambda: (known := watch.now()) is not None and known[NAME].status == "exited")
    assert "cannot be read" in str([record.__dict__ for record in caplog.records])
