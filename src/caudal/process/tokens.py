"""Token files on disk: the only module that reads and writes them.

A gateway's file (formats/tokens.py) holds digests; their key is beside it in `FILE.key`. A
client's file holds the token itself, on one line.
"""

import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from caudal.errors import UsageError
from caudal.formats.tokens import TokenEntry, check_strength, decode, encode, is_gateways_line

_MOST_BYTES = 1 << 20
_KEY_BYTES = 32


@dataclass(frozen=True)
class Known:
    """The entries and the key that a gateway uses."""

    entries: tuple[TokenEntry, ...]
    key: bytes


def key_path(path: Path) -> Path:
    """Return the path of a token file's key."""
    return path.with_name(path.name + ".key")


def read_known(path: Path) -> Known:
    """Read a gateway's token file and its key."""
    return Known(decode(_text_of(path), f"the token file {path}"), read_key(path))


def read_entries(path: Path) -> tuple[TokenEntry, ...]:
    """Read the entries only."""
    return decode(_text_of(path), f"the token file {path}")


def read_key(path: Path) -> bytes:
    """Read the key of a token file, which must be private."""
    file = key_path(path)
    try:
        if file.stat().st_mode & stat.S_IROTH:
            raise UsageError(f"every user can read {file}: make it private with chmod 600 {file}")
        key = bytes.fromhex(file.read_text(encoding="ascii"))
    except OSError as error:
        raise UsageError(
            f"the key of the token file, {file}, cannot be read: {error.strerror}; copy it here "
            "together with the token file, or create both with `caudal token new NAME`"
        ) from None
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise UsageError(f"{file} is not a valid key: restore it, or create all tokens again")
    return key


@contextlib.contextmanager
def changing(path: Path) -> Iterator[list[TokenEntry]]:
    """Yield the entries of a file to change; they are written atomically at the end of the block.

    Concurrent changes of one file wait for each other. The key is created if there is none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entries = list(read_entries(path)) if path.exists() else []
        _make_key(path, needed=bool(entries))
        yield entries
        write_private(path, encode(tuple(entries)))
    finally:
        os.close(lock)


def write_private(path: Path, text: str) -> None:
    """Replace a file's text atomically, readable by this user only."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(file, "w", encoding="utf-8") as words:
            words.write(text)
            words.flush()
            os.fsync(file)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _make_key(path: Path, *, needed: bool) -> None:
    """Create the key if needed. With entries it must exist: a new key would hide its loss."""
    if needed:
        read_key(path)
    elif not key_path(path).exists():
        write_private(key_path(path), secrets.token_bytes(_KEY_BYTES).hex() + "\n")


def read_bearer(path: Path) -> str:
    """Return the token of a client's file: TOKEN or NAME:TOKEN on its first non-comment line."""
    lines = [line.strip() for line in _text_of(path).splitlines()]
    first = next((line for line in lines if line and not line.startswith("#")), "")
    if is_gateways_line(first):
        raise UsageError(
            f"{path} is the token file of gateways, which holds no tokens: give the file with the "
            "token that `caudal token new` printed"
        )
    return checked_bearer(first.rpartition(":")[2].strip(), str(path))


def read_strong(path: Path) -> str:
    """Return the token of a client's file; raise UsageError if it could be guessed."""
    return check_strength(read_bearer(path), str(path))


def checked_bearer(token: str, place: str) -> str:
    """Return the token; raise UsageError if it cannot be sent in a header."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"{place} holds no token: a token is one line of letters and digits")
    return token


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageError(f"the token file {path} is too large: at most {_MOST_BYTES} bytes")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"the token file {path} cannot be read: {reason}") from None
