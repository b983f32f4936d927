"""What a listing costs on S3: requests, of which each is a wait."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.harness.fault_proxy import FaultProxy, proxy_before
from tests.harness.seaweed import S3Server

from caudal.store import S3Store, entries

FOLDERS = [f"windows/{series:02}/{month:02}/" for series in range(15) for month in range(80)]


@pytest.fixture(scope="module")
def small_folders(s3_server: S3Server) -> str:
    """The prefix of a store with 1,200 keys in as many folders."""
    prefix = "requests"
    store = S3Store(s3_server.bucket, prefix, s3_server.settings)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda folder: store.create(f"{folder}data", b""), FOLDERS))
    return prefix


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with proxy_before(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def store(s3_server: S3Server, proxy: FaultProxy, small_folders: str) -> S3Store:
    settings = replace(s3_server.settings, endpoint=proxy.endpoint)
    return S3Store(s3_server.bucket, small_folders, settings)


def test_a_tree_of_small_folders_is_a_request_per_thousand_keys(
    store: S3Store, proxy: FaultProxy
) -> None:
    assert [entry.key for entry in entries(store, "windows/")] == [f"{at}data" for at in FOLDERS]
    assert proxy.gets == 2


def test_a_part_of_a_name_does_not_read_the_folders_beside_it(
    store: S3Store, proxy: FaultProxy
) -> None:
    assert len(list(entries(store, "windows/03/07"))) == 1
    assert proxy.gets == 2


def test_one_level_does_not_read_what_lies_below(store: S3Store, proxy: FaultProxy) -> None:
    assert len(store.list("windows/", recursive=False).folders) == 15
    assert proxy.gets == 1
