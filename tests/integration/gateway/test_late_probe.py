"""A gateway that serves already ends with a message once its store breaks its promise."""

from pathlib import Path
from threading import Event

import pytest
from tests.harness.waiting import GUARD_SECONDS

from caudal.cli import gateway_process
from caudal.cli.gateway_process import Access
from caudal.errors import StoreError, UsageError
from caudal.gateway import late_probe, process
from caudal.store import MemoryStore


class LyingLater(MemoryStore):
    """Away until the gateway serves. Then a second create overwrites the first."""

    def __init__(self) -> None:
        super().__init__()
        self.serves = Event()

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        if not self.serves.is_set():
            raise StoreError("away")
        self.replace(key, data)


def test_it_ends_with_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    store = LyingLater()

    class Server(process.Server):
        async def on_tick(self, counter: int) -> bool:
            store.serves.set()
            return await super().on_tick(counter)

    monkeypatch.setattr(late_probe, "WAIT_SECONDS", GUARD_SECONDS)  # it does not take so long
    monkeypatch.setattr(process, "Server", Server)
    monkeypatch.setattr(gateway_process, "open_store", lambda *_, **__: store)
    monkeypatch.setattr(gateway_process, "set_up_logs", lambda *_: None)
    with pytest.raises(UsageError, match="let a second create overwrite the first"):
        gateway_process.serve(
            store="s3://bucket",
            broker="memory:",
            host="127.0.0.1",
            port=0,
            access=Access(),
            name=None,
            job_timeout=60.0,
            keep_results=None,
            keep_unused="7d",
            rate=100.0,
            sentiment=[],
            log_format="json",
            fsync=False,
            beating=None,
        )
    assert store.serves.is_set()
