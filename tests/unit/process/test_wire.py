"""Only those with the secret are heard, and nothing is heard twice."""

from pathlib import Path

import pytest

from caudal.errors import UsageError
from caudal.process.wire import Frames, Seal, make_secret, read_secret

SEAL = Seal(b"a secret of sixteen or more")


def test_what_was_sealed_opens_with_the_same_secret_and_context_only() -> None:
    sealed = SEAL.close(b"words", b"here")
    assert SEAL.open(sealed, b"here") == b"words"
    assert SEAL.open(sealed, b"there") is None
    assert Seal(b"another secret").open(sealed, b"here") is None
    assert SEAL.open(sealed[:-1] + b"?", b"here") is None
    assert SEAL.open(b"", b"here") is None


def test_the_border_between_context_and_words_cannot_be_moved() -> None:
    assert SEAL.open(SEAL.close(b"bc", b"a"), b"ab") is None


def test_a_frame_opens_once_in_its_place() -> None:
    said, heard = Frames(SEAL, b"nonce", b"there"), Frames(SEAL, b"nonce", b"there")
    first, second = said.close(b"one")[4:], said.close(b"two")[4:]
    assert heard.open(first) == b"one"
    assert heard.open(first) is None  # replayed: the second place has another number
    late = Frames(SEAL, b"nonce", b"there")
    assert late.open(second) is None
    assert Frames(SEAL, b"other", b"there").open(first) is None
    assert Frames(SEAL, b"nonce", b"back").open(first) is None


def test_a_secret_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    make_secret(path)
    first = read_secret(path)
    make_secret(path)
    assert read_secret(path) == first
    assert path.stat().st_mode & 0o077 == 0


def test_a_missing_or_short_secret_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_secret(tmp_path / "secret")
    (tmp_path / "secret").write_text("short")
    with pytest.raises(UsageError, match="too short"):
        read_secret(tmp_path / "secret")
