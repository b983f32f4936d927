"""From what a user writes to a store."""

from pathlib import Path

import pytest

from caudal.errors import StoreError, UsageError
from caudal.store import DirectoryStore, MemoryStore, S3Settings, S3Store, open_store


def test_paths_and_file_urls_are_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("here", f"{tmp_path}/there", f"file://{tmp_path}/with%20blank", "./a:b"):
        store = open_store(url)
        assert isinstance(store, DirectoryStore)
        store.create("key", b"bytes")
    files = sorted(f"{path.parent.name}" for path in tmp_path.rglob("key"))
    assert files == ["a:b", "here", "there", "with blank"]


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_store("~/store").create("key", b"")
    assert (tmp_path / "store" / "key").exists()


def test_memory_is_new_each_time() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)
    assert open_store("memory:") is not open_store("memory:")


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3://bucket/some/prefix/"])
def test_buckets(url: str) -> None:
    store = open_store(url, s3=S3Settings())
    assert isinstance(store, S3Store)
    assert repr(store) == f"S3Store({url.rstrip('/')!r})"


@pytest.mark.parametrize(
    "url",
    ["", "ftp://host/x", "gs://bucket", "memory:x", "memory://", "s3:bucket", "s3://", "s3:///x",
     "file:relative", "file://host/x", "file:///x?y", "s3://bucket/a//b", "s3://bucket/../x",
     "s3://bucket/" + "x" * 200]
)  # fmt: skip
def test_what_names_no_store(url: str) -> None:
    with pytest.raises(UsageError):
        open_store(url, s3=S3Settings())


def test_without_settings_those_of_the_environment_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(open_store("s3://bucket"), S3Store)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "ftp://host")
    with pytest.raises(UsageError, match="endpoint must be a URL"):
        open_store("s3://bucket")


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for url in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match=r"cannot open a store in .*: there is a file where"):
            open_store(str(url))


def test_settings_from_the_environment() -> None:
    settings = S3Settings.from_environment(
        {
            "AWS_ENDPOINT_URL": "https://ignored",
            "AWS_ENDPOINT_URL_S3": "https://host:9000",
            "AWS_DEFAULT_REGION": "eu-south-2",
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "shh",
            "AWS_SESSION_TOKEN": "hush",
        }
    )
    assert (settings.endpoint, settings.region) == ("https://host:9000", "eu-south-2")
    provider = settings.credential_provider()
    assert provider is not None
    assert provider()["secret_access_key"] == "shh"
    assert provider()["token"] == "hush"
    for secret in ("AKIAEXAMPLE", "shh", "hush"):
        assert secret not in repr(settings)
        assert secret not in repr(open_store("s3://bucket/x", s3=settings))


def test_no_environment_is_no_settings() -> None:
    assert S3Settings.from_environment({}) == S3Settings()


def test_plain_http_only_where_the_endpoint_says_so() -> None:
    assert S3Settings(endpoint="http://127.0.0.1:1").client_options()["allow_http"] is True
    assert S3Settings(endpoint="https://host").client_options()["allow_http"] is False
    assert S3Settings().client_options()["allow_http"] is False


@pytest.mark.parametrize(
    "settings",
    [
        {"access_key": "only one"},
        {"secret_key": "only one"},
        {"endpoint": "host:9000"},
        {"endpoint": "https://user:shh@host"},
        {"timeout_seconds": 0},
        {"retries": -1},
    ],
)
def test_settings_that_cannot_work(settings: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        S3Settings(**settings)  # type: ignore[arg-type]
    assert "shh" not in str(caught.value)
