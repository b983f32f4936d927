"""Addresses and tokens, from options and from the environment."""

from pathlib import Path

import pytest

from caudal.cli.gateways import GatewayOptions
from caudal.client.addresses import addresses_of, is_loopback, read_token
from caudal.client.batches import Compress
from caudal.client.client import Client
from caudal.errors import UsageError


def test_addresses_come_from_the_option_or_the_environment() -> None:
    assert addresses_of(None, {"CAUDAL_GATEWAY": "a:1,b:2,a:1"}) == ["http://a:1", "http://b:2"]
    assert addresses_of(["https://c/"], {"CAUDAL_GATEWAY": "a:1"}) == ["https://c"]
    with pytest.raises(UsageError, match="no gateway: give --gateway"):
        addresses_of(None, {})


@pytest.mark.parametrize("text", ["ftp://a", "http://", "http://a:port", "http://a?x=1", "a:0"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a URL") as caught:
        addresses_of(f"one:8421,{text}", {})
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["me:secret@host:port", "ftp://me:secret@host"])
def test_a_password_is_never_repeated(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        addresses_of(text, {})
    assert "secret" not in str(caught.value)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="use --token-file") as caught:
        addresses_of("http://me:secret@host:1", {})
    assert "secret" not in str(caught.value)


def test_a_token_is_the_first_line_that_holds_one(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# mine\n\nme: s3cret \nyou:other\n")
    assert read_token(file, {}) == "s3cret"
    assert read_token(None, {"CAUDAL_TOKEN_FILE": str(file)}) == "s3cret"
    assert read_token(None, {}) is None


def test_a_file_without_a_token_is_refused_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    for text in ("", "two words\n"):
        file.write_text(text)
        with pytest.raises(UsageError, match="holds no token") as caught:
            read_token(file, {})
        assert "words" not in str(caught.value)
    with pytest.raises(UsageError, match="cannot be read"):
        read_token(tmp_path / "absent", {})


FAR, NEAR, SAFE = "http://far:1", "http://127.0.0.1:1", "https://far:1"


@pytest.mark.parametrize("given", ["token", "file", "environment"])
def test_a_token_that_others_can_read_is_told(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a client of Python and by the commands in the same words."""
    file = tmp_path / "token"
    file.write_text("secret\n")
    if given == "environment":
        monkeypatch.setenv("CAUDAL_TOKEN_FILE", str(file))
    token = "secret" if given == "token" else None
    token_file = file if given == "file" else None
    line = f"the token goes to {FAR} unencrypted: use https"
    with pytest.warns(UserWarning, match=f"^{line}$") as caught:
        Client([SAFE, NEAR, FAR], token, token_file=token_file)
    assert caught[0].filename == __file__
    Client([SAFE, NEAR], token, token_file=token_file)  # warnings are errors here
    if given != "token":
        for addresses, told in (
            (f"{SAFE},{NEAR},{FAR}", f"note: {line}\n"),
            (f"{SAFE},{NEAR}", ""),
        ):
            GatewayOptions(addresses, token_file).open().close()
            assert capsys.readouterr().err == told


def test_without_a_token_there_is_nothing_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    Client(FAR)
    GatewayOptions(FAR).open().close()
    assert capsys.readouterr().err == ""


def test_batches_are_compressed_on_their_way_to_other_machines() -> None:
    near, far = ["http://127.0.0.1:1", "http://localhost:2", "http://[::1]:3"], ["http://far:1"]
    assert all(is_loopback(one) for one in near)
    assert not Compress.AUTO.pays(near)
    assert Compress.AUTO.pays([*near, *far])
    assert Compress.ALWAYS.pays(near)
    assert not Compress.NEVER.pays(far)
