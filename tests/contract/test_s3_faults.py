"""A create over a bad network answers the truth: ours, somebody else's, or "unknown, ask again"."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from uuid import uuid4

import pytest
from tests.harness.fault_proxy import DONE, Fault, FaultProxy, proxy_before
from tests.harness.seaweed import S3Server
from tests.harness.silent_relay import relayed

from caudal.errors import AlreadyExistsError, NotFoundError, StoreError
from caudal.store import S3Settings, S3Store, Store

FAULTS = [fault for fault in Fault if fault is not Fault.NONE]
TWICE = list(product(FAULTS, repeat=2))


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with proxy_before(s3_server.endpoint) as proxy:
        yield proxy


def store_at(endpoint: str, server: S3Server, retries: int, prefix: str) -> Store:
    settings = S3Settings(
        endpoint=endpoint,
        access_key=server.access_key,
        secret_key=server.secret_key,
        retries=retries,
        retry_seconds=5,
        timeout_seconds=10,
    )
    return S3Store(server.bucket, prefix, settings)


@pytest.fixture(params=[0, 3], ids=["no retries", "retries"])
def pair(
    request: pytest.FixtureRequest, proxy: FaultProxy, s3_server: S3Server
) -> tuple[Store, Store]:
    """One store over the bad network and over the good one."""
    prefix = f"faults/{uuid4().hex}"
    bad = store_at(proxy.endpoint, s3_server, request.param, prefix)
    return bad, store_at(s3_server.endpoint, s3_server, 3, prefix)


@pytest.mark.parametrize("faults", TWICE, ids=lambda two: f"{two[0].name}-{two[1].name}")
def test_a_free_key_is_ours(
    pair: tuple[Store, Store], proxy: FaultProxy, faults: tuple[Fault, ...]
) -> None:
    bad, good = pair
    proxy.plan(faults)
    bad.create("key", b"ours")
    assert good.read("key") == b"ours"
    assert proxy.puts > 0


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_taken_key_stays_taken(
    pair: tuple[Store, Store], proxy: FaultProxy, fault: Fault
) -> None:
    bad, good = pair
    good.create("key", b"theirs")
    proxy.plan([fault] * 2)
    with pytest.raises(AlreadyExistsError):
        bad.create("key", b"ours")
    assert good.read("key") == b"theirs"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_server_that_never_answers_a_put_properly(
    pair: tuple[Store, Store], proxy: FaultProxy, fault: Fault, tmp_path: Path
) -> None:
    """Bounded attempts; what was done is recognised, what was not is an error."""
    bad, good = pair
    (tmp_path / "file").write_bytes(b"ours" * 100_000)
    proxy.plan([fault] * 100)
    if fault in DONE:
        bad.create("key", tmp_path / "file")
        assert good.read("key") == b"ours" * 100_000
    else:
        with pytest.raises(StoreError, match="cannot create key in s3://"):
            bad.create("key", tmp_path / "file")
        with pytest.raises(NotFoundError):
            good.read("key")


def test_a_server_that_is_away(pair: tuple[Store, Store], proxy: FaultProxy) -> None:
    bad, good = pair
    proxy.away = True
    for operation in (
        lambda: bad.create("key", b"ours"),
        lambda: bad.read("key"),
        lambda: bad.list(""),
        lambda: bad.delete("key"),
        lambda: bad.replace("key", b"ours"),
    ):
        with pytest.raises(StoreError, match="answered 503"):
            operation()
    proxy.away = False
    bad.create("key", b"ours")
    assert good.read("key") == b"ours"


OPERATIONS: dict[str, Callable[[Store], object]] = {
    "create": lambda store: store.create("new", b"ours"),
    "read": lambda store: store.read("key"),
    "read a range": lambda store: store.read("key", 1, 2),
    "list": lambda store: store.list(""),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_connection_that_fell_silent_is_not_awaited(name: str, s3_server: S3Server) -> None:
    """After a network failed for seconds, TCP may try again only a minute later."""
    with relayed(s3_server.endpoint) as relay:
        hours = 3600.0
        settings = replace(
            s3_server.settings,
            endpoint=relay.endpoint,
            silent_seconds=0.5,
            timeout_seconds=hours,
            retry_seconds=hours,
        )
        store = S3Store(s3_server.bucket, f"silent/{uuid4().hex}", settings)
        store.create("key", b"before")
        before = relay.opened
        relay.silence()
        OPERATIONS[name](store)
        assert relay.opened > before


def test_what_must_not_land_late_and_large_objects_are_awaited(s3_server: S3Server) -> None:
    """A DELETE or a plain PUT that was given up may still reach the server, after a newer one."""
    with relayed(s3_server.endpoint, answer_seconds=1.0) as relay:
        settings = replace(
            s3_server.settings, endpoint=relay.endpoint, silent_seconds=0.2, retries=0
        )
        store = S3Store(s3_server.bucket, f"awaited/{uuid4().hex}", settings)
        with pytest.raises(StoreError, match="too slow"):
            store.create("small", b"ours")
        assert store._put("large", b"x" * (1 << 20), "create")
        assert store.replace("small", b"ours")
        store.delete("small")


def test_nobody_listens(proxy: FaultProxy, s3_server: S3Server) -> None:
    proxy.server_close()
    store = store_at(proxy.endpoint, s3_server, 1, "nobody")
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        store.create("key", b"ours")
    assert "\n" not in str(caught.value)


def test_wrong_credentials_are_refused_at_once_and_not_shown(s3_server: S3Server) -> None:
    settings = S3Settings(
        endpoint=s3_server.endpoint, access_key=s3_server.access_key, secret_key="wrong-and-secret"
    )
    store = S3Store(s3_server.bucket, "", settings)
    for operation in (lambda: store.create("key", b""), lambda: store.read("key")):
        with pytest.raises(
            StoreError, match=r"answered 403 Forbidden \(\w+\); check the cred"
        ) as caught:
            operation()
        for secret in (s3_server.access_key, "wrong-and-secret", "Signature="):
            assert secret not in f"{caught.value}{settings}{store}"


def test_a_missing_bucket_is_not_a_missing_object(s3_server: S3Server) -> None:
    with pytest.raises(StoreError, match="NoSuchBucket") as caught:
        S3Store("no-such-bucket", "", s3_server.settings).read("key")
    assert not isinstance(caught.value, NotFoundError)


def test_the_environment_decides_nothing(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_REGION": "nowhere",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "else",
        "AWS_SESSION_TOKEN": "stale",
        "AWS_SKIP_SIGNATURE": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
    }
    for name, value in hostile.items():
        monkeypatch.setenv(name, value)
    store = store_at(s3_server.endpoint, s3_server, 0, f"environment/{uuid4().hex}")
    store.create("key", b"ours")
    assert store.read("key") == b"ours"
