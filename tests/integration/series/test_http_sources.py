"""A source at an HTTP address: fetched when it has changed, whole or not at all."""

import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from tests.harness.http_files import FileHandler, FileServer, file_server
from tests.harness.series_world import World, forget
from typer.testing import CliRunner, Result

from caudal.cli.series import series
from caudal.series import IngestOutcome, SeriesConfig, ingest
from caudal.series.config import SeriesSource, SourceFormat, SourceKind
from caudal.series.errors import SourceError
from caudal.series.sources.http import HttpLimits, _FetchError, _Redirects, fetch
from caudal.store import MemoryStore

ONE = b"day,alpha,beta\n2024-01-30,1.0,10.0\n"
TWO = b"day,alpha,beta\n2024-01-30,1.5,10.0\n2024-01-31,2.0,20.0\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with file_server() as served:
        yield served


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    source = SeriesSource(SourceFormat.CSV, SourceKind.HTTP)
    world.config = msgspec.structs.replace(world.config, source=source)
    return world


def ingest_at(
    world: World, store: MemoryStore, server: FileServer, config: SeriesConfig | None = None
) -> IngestOutcome:
    return ingest(world.catalog(store), config or world.config, f"{server.base}/rates.csv?key=s3")


def test_an_unchanged_source_is_not_read_again(world: World, server: FileServer) -> None:
    store, path = MemoryStore(), "/rates.csv?key=s3"
    server.files[path] = (ONE, '"1"')
    assert ingest_at(world, store, server).added == 2
    again = ingest_at(world, store, server)
    assert (again.version, again.is_unchanged) == (None, True)
    assert server.statuses == [200, 304]
    server.files[path] = (TWO, '"2"')
    changed = ingest_at(world, store, server)
    assert (changed.version, changed.added, changed.revised) == (2, 2, 1)
    assert ingest_at(world, store, server).is_unchanged
    assert [etag for _, etag, _ in server.asked] == ["", '"1"', '"1"', '"2"']
    stored = b"".join(store.read(one.key) for one in store.list("").entries)
    assert b"key=s3" not in stored, "a query may contain a secret"


def test_a_source_is_read_again_if_anything_else_has_changed(
    world: World, server: FileServer
) -> None:
    """Whatever an ETag says, an ingest adds what an ingest of the whole source would add."""
    store, path = MemoryStore(), "/rates.csv?key=s3"
    server.files[path] = (TWO, '"2"')
    only_alpha = msgspec.structs.replace(world.config, series=world.config.series[:1])
    assert ingest_at(world, store, server, only_alpha).added == 2
    assert ingest_at(world, store, server).added == 2, "another config reads more"
    server.files["/other.csv"] = (ONE, "")
    ingest(world.catalog(store), world.config, f"{server.base}/other.csv")
    outcome = ingest_at(world, store, server)
    assert outcome.revised == 1, "another source had replaced a value"
    forget(store, "/sources/")
    outcome = ingest_at(world, store, server)
    assert (outcome.version, outcome.is_unchanged) == (None, False), "nothing is remembered"
    for key in [one.key for one in store.list("datasets/little/sources/").entries]:
        store.replace(key, b"{damaged")
    assert not ingest_at(world, store, server).is_unchanged


def test_a_source_without_an_etag_is_read_every_time(world: World, server: FileServer) -> None:
    store = MemoryStore()
    server.files["/rates.csv?key=s3"] = (ONE, "")
    ingest_at(world, store, server)
    outcome = ingest_at(world, store, server)
    assert (outcome.version, outcome.is_unchanged, outcome.observations) == (None, False, 2)
    assert server.statuses == [200, 200]


def _send_on(to: str, handler: FileHandler) -> None:
    handler.send(302, Location=to)


def test_redirects_are_followed_but_not_for_ever(server: FileServer) -> None:
    server.files["/end"] = (ONE, '"1"')
    for n in range(6):
        to = f"/hop{n + 1}" if n < 5 else "/end"
        server.answers[f"/hop{n}"] = partial(_send_on, to)
    assert fetch(f"{server.base}/hop1").data == ONE, "five redirects"
    with pytest.raises(SourceError, match="/hop0 redirects too often, in a circle"):
        fetch(f"{server.base}/hop0")
    server.answers["/circle"] = lambda handler: handler.send(302, Location="/circle")
    with pytest.raises(SourceError, match="in a circle"):
        fetch(f"{server.base}/circle")


@pytest.mark.parametrize("to", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,day"])
def test_a_redirect_leads_only_to_http(server: FileServer, to: str) -> None:
    server.answers["/away"] = lambda handler: handler.send(302, Location=to)
    with pytest.raises(SourceError):
        fetch(f"{server.base}/away")


def test_a_redirect_does_not_leave_https() -> None:
    request = urllib.request.Request("https://example.org/a")
    with pytest.raises(_FetchError, match="which is not followed"):
        _Redirects().redirect_request(request, None, 302, "", {}, "http://example.org/a")


def test_an_answer_that_is_too_large_is_refused(server: FileServer) -> None:
    def endless(handler: FileHandler) -> None:
        handler.begin(200)
        while not handler.files.stopping.is_set():
            handler.wfile.write(b"x" * 65_536)

    server.answers["/endless"] = endless
    server.files["/large"] = (b"x" * 2_000_001, "")
    for path in ("/large", "/endless"):
        with pytest.raises(SourceError, match="larger than 2MB: download it"):
            fetch(f"{server.base}{path}", limits=HttpLimits(bytes=2_000_000))


def test_an_answer_that_ends_early_is_an_error(server: FileServer) -> None:
    def torn(handler: FileHandler) -> None:
        handler.begin(200, **{"Content-Length": "100"})
        handler.wfile.write(ONE)

    server.answers["/torn"] = torn
    with pytest.raises(SourceError, match="ended after 35 of 100 bytes"):
        fetch(f"{server.base}/torn")


def test_a_server_that_drips_is_left(server: FileServer) -> None:
    """Every byte comes in time, the last one never; and so with headers."""

    def drip(handler: FileHandler) -> None:
        if handler.path == "/body":
            handler.begin(200)
        else:
            handler.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
        while not handler.files.stopping.wait(0.02):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    for path in ("/body", "/head"):
        server.answers[path] = drip
        with pytest.raises(SourceError, match=r"it took longer than 0\.3 s"):
            fetch(f"{server.base}{path}", limits=HttpLimits(seconds=0.3))


def test_a_server_that_is_silent_is_left(server: FileServer) -> None:
    def silent(handler: FileHandler) -> None:
        handler.files.stopping.wait()

    server.answers["/silent"] = silent
    with pytest.raises(SourceError, match=r"no answer within 0\.2 s"):
        fetch(f"{server.base}/silent", limits=HttpLimits(idle_seconds=0.2))


def test_what_a_server_answers_is_told(server: FileServer) -> None:
    server.answers["/busy"] = lambda handler: handler.send(503)
    server.answers["/zip"] = lambda handler: handler.send(
        200, b"\x1f\x8b", **{"Content-Encoding": "gzip"}
    )
    with pytest.raises(SourceError, match=r"/nowhere answered 404 Not Found: check the address"):
        fetch(f"{server.base}/nowhere?key=secret")
    with pytest.raises(SourceError, match="answered 503 Service Unavailable: try again later"):
        fetch(f"{server.base}/busy")
    with pytest.raises(SourceError, match="sent it as gzip"):
        fetch(f"{server.base}/zip")
    with pytest.raises(SourceError, match=r"cannot fetch http://127\.0\.0\.1:9/x: Connection"):
        fetch("http://127.0.0.1:9/x?key=secret")


def command(tmp_path: Path, config: str, *arguments: str) -> Result:
    path = tmp_path / "http.toml"
    path.write_text(config)
    given = ["ingest", str(path), *arguments, "--store", str(tmp_path / "store")]
    return CliRunner().invoke(series, given)


def test_the_command_reads_the_address_of_the_config(tmp_path: Path, server: FileServer) -> None:
    server.files["/rates.csv"] = (ONE, '"1"')
    World(tmp_path)
    text = (tmp_path / "little-0.toml").read_text()
    http = text.replace("[source]", f'[source]\nkind = "http"\nurl = "{server.base}/rates.csv"')
    assert "version 1: 2 new" in command(tmp_path, http).output
    said = command(tmp_path, http).output
    assert "nothing new: the source has not changed since the last ingest" in said
    assert server.statuses == [200, 304]
    plain = text.replace("[source]", '[source]\nkind = "http"')
    assert "give FILE" in str(command(tmp_path, plain).exception)
    assert "must begin with https://" in str(command(tmp_path, plain, "rates.csv").exception)
    said = str(command(tmp_path, plain, "http://me:secret@host/x").exception)
    assert "contains a user or a password" in said
    assert "secret" not in said
    said = str(command(tmp_path, text, f"{server.base}/rates.csv").exception)
    assert 'is an address, but the config says kind = file: write kind = "http"' in said
    assert "url is for kind" in str(
        command(tmp_path, text.replace("[source]", '[source]\nurl = "http://x"')).exception
    )
