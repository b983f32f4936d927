"""Tokens: the file, whose they are, and where one may listen without them."""

from pathlib import Path

import pytest

from caudal.errors import UsageError
from caudal.gateway.rates import Rates
from caudal.gateway.tokens import NOBODY, Tokens, check_host, read_tokens


def test_names_and_comments_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# who\nalice:secret-of-alice\n\n  a:b:secret-of-b\nbare-secret\n")
    tokens = read_tokens(file)
    owners = [tokens.owner(f"Bearer {one}") for one in ("secret-of-alice", "secret-of-b")]
    assert tokens.owner("bearer   bare-secret") is not None
    assert None not in owners
    assert len(set(owners)) == 2
    for wrong in (
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic bare-secret",
        "Bearer alice",
        "bare-secret",
    ):
        assert tokens.owner(wrong) is None, wrong


def test_the_same_token_in_another_file_is_the_same_owner(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("alice:secret\n")
    other.write_text("x:y\nsomebody:secret\n")
    assert read_tokens(one).owner("Bearer secret") == read_tokens(other).owner("Bearer secret")


def test_a_token_is_never_kept(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("alice:top-secret\n")
    assert "top-secret" not in repr(read_tokens(file))


@pytest.mark.parametrize("content", ["", "# nothing\n", "alice:\n", "alice:two words\n", "ä:ö\n"])
def test_a_file_without_tokens_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(content)
    with pytest.raises(UsageError, match="token"):
        read_tokens(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            read_tokens(path)


def test_without_tokens_only_this_machine_is_served() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.9.9.9"):
        check_host(host, Tokens())
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""):
        with pytest.raises(UsageError, match="--token-file"):
            check_host(host, Tokens())
        check_host(host, Tokens(("x",)))
    assert Tokens().owner(None) == NOBODY


def test_a_bucket_fills_steadily() -> None:
    rates = Rates(per_second=2.0, burst=4.0)
    assert [rates.take("a", 0.0) for _ in range(5)] == [0, 0, 0, 0, 1]
    assert rates.take("b", 0.0) == 0
    assert [rates.take("a", 1.0) for _ in range(3)] == [0, 0, 1]
    assert [rates.take("a", 1000.0) for _ in range(5)] == [0, 0, 0, 0, 1]
    assert rates.take("a", 999.0) == 1, "a clock that jumps back gives nothing"
