"""`caudal token`: what it writes, what it prints, what it refuses."""

import re
from pathlib import Path

import pytest

from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.cluster.settings import FILE
from caudal.formats.tokens import Right, check_strength
from caudal.gateway.tokens import Tokens
from caudal.process.tokens import key_path, read_known

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def token(file: Path, *words: str) -> int:
    return main(["token", words[0], *words[1:], "--token-file", str(file)])


def made(file: Path, capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert token(file, "new", *words) == ExitStatus.OK
    return capsys.readouterr().out.strip()


def test_a_token_is_printed_once_and_kept_nowhere(file: Path, capsys: Capture) -> None:
    text = made(file, capsys, "alice")
    check_strength(text, "here")
    caller = Tokens.of_file(file).caller(f"Bearer {text}")
    assert caller.owner == "alice"
    assert caller.rights == {Right.READ, Right.SUBMIT}
    for path in file.parent.iterdir():
        assert text not in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o600, path
    token(file, "list")
    assert re.fullmatch(r"alice  [0-9a-f]{8}  read,submit  never\n", capsys.readouterr().out)


def test_rights_and_expiry(file: Path, capsys: Capture) -> None:
    made(file, capsys, "wall", "--rights", "read", "--expires", "30d")
    made(file, capsys, "boss", "--rights", "admin,read", "--expires", "2020-01-31T00:00:00Z")
    wall, boss = read_known(file).entries
    assert wall.rights == {Right.READ}
    assert wall.expires is not None
    assert boss.rights == {Right.READ, Right.ADMIN}
    token(file, "list")
    assert "2020-01-31T00:00:00Z  expired" in capsys.readouterr().out


def test_a_token_is_replaced_while_both_work(file: Path, capsys: Capture) -> None:
    first = made(file, capsys, "alice")
    assert token(file, "new", "alice") == ExitStatus.USAGE
    assert "--another" in capsys.readouterr().err
    second = made(file, capsys, "alice", "--another")
    tokens = Tokens.of_file(file)
    assert [tokens.caller(f"Bearer {one}").owner for one in (first, second)] == ["alice"] * 2
    old = read_known(file).entries[0].id
    assert token(file, "revoke", "alice", "--id", old) == ExitStatus.OK
    assert len(read_known(file).entries) == 1
    assert Tokens.of_file(file).caller(f"Bearer {second}").owner == "alice"
    assert token(file, "revoke", "alice") == ExitStatus.OK
    assert read_known(file).entries == ()
    assert token(file, "revoke", "alice") == ExitStatus.USAGE


def test_a_token_that_clients_have_is_kept_if_it_is_strong(file: Path, capsys: Capture) -> None:
    old = file.with_name("old")
    old.write_text("0123456789abcdef0123456789abcdef\n")
    assert made(file, capsys, "alice", "--from", str(old)) == "", "it is known to who has it"
    assert Tokens.of_file(file).caller("Bearer 0123456789abcdef0123456789abcdef").owner == "alice"
    assert token(file, "new", "berta", "--from", str(old)) == ExitStatus.USAGE
    assert "in the file already" in capsys.readouterr().err
    old.write_text("secret\n")
    assert token(file, "new", "berta", "--from", str(old)) == ExitStatus.USAGE
    err = capsys.readouterr().err
    assert "too weak" in err
    assert "secret" not in err


@pytest.mark.parametrize(
    "words",
    [
        ("local",), ("a b",), ("",), ("../x",), ("alice", "--rights", "write"),
        ("alice", "--rights", "read,"), ("alice", "--expires", "soon"), ("alice", "--expires", "3"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_nothing_is_written(
    file: Path, capsys: Capture, words: tuple[str, ...]
) -> None:
    assert token(file, "new", *words) == ExitStatus.USAGE
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert list(file.parent.iterdir()) == []


def test_a_lost_key_and_an_older_file_are_told(file: Path, capsys: Capture) -> None:
    made(file, capsys, "alice")
    key_path(file).unlink()
    assert token(file, "new", "berta") == ExitStatus.USAGE
    assert "tokens.key" in capsys.readouterr().err
    file.write_text("alice:her-secret\n")
    assert token(file, "list") == ExitStatus.USAGE
    assert "of an older form" in capsys.readouterr().err


def test_the_file_is_that_of_the_cluster(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / FILE).write_text("[hosts.a]\nbroker = true\n[hosts.b]\nport = 9000\n")
    assert main(["token", "new", "alice", "--dir", str(tmp_path)]) == ExitStatus.OK
    assert 'tokens = "tokens"' in capsys.readouterr().err, "gateways do not ask for it yet"
    assert (tmp_path / "tokens").exists()
    text = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text(f'tokens = "who/may"\n{text}')
    assert main(["token", "new", "alice", "--dir", str(tmp_path)]) == ExitStatus.OK
    assert "do not ask" not in capsys.readouterr().err
    assert (tmp_path / "who" / "may").exists()
    assert main(["token", "new", "alice", "--dir", str(tmp_path / "none")]) == ExitStatus.USAGE
