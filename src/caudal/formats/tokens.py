"""The lines of a gateway's token file, and the rules for tokens. See docs/formats/tokens.md.

    line    = name rights expires digest          separated by blanks
    name    = the owner of every job that this token creates
    rights  = one or more of read, submit, admin, separated by commas
    expires = a moment in UTC (2027-01-31T00:00:00Z), or "never"
    digest  = HMAC-SHA-256 of the token under the key beside the file, in hexadecimal

Rules
1. A token file holds no token. A person who reads it cannot send requests as an owner, and without
   the key cannot even test guessed tokens against it.
2. Two lines may have the same name: they are two tokens of one owner.
3. No message repeats a line, because it may hold a token by mistake.
"""

import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from caudal.errors import UsageError

NEVER = "never"
PREFIX = "caudal_"  # of tokens made here, so that tools that search for leaked secrets find them
MOST_TOKENS = 1_000
HEADING = "# Caudal tokens: name, rights, expires, digest. `caudal token new NAME` adds a line.\n"
NOBODY = "local"  # the owner of jobs of a gateway without tokens

_LEAST_CHARACTERS, _LEAST_DIFFERENT = 24, 10
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_MOMENT = "%Y-%m-%dT%H:%M:%SZ"


class Right(StrEnum):
    """The permissions of a token."""

    READ = "read"  # list and look at one's own jobs, fetch their results
    SUBMIT = "submit"  # create one's own jobs, send their tables, cancel them
    ADMIN = "admin"  # look at and cancel the jobs of all owners, see all quotas


@dataclass(frozen=True)
class TokenEntry:
    """One line. `expires` is in seconds since 1970, UTC; None: never."""

    name: str
    rights: frozenset[Right]
    expires: float | None
    digest: str

    @property
    def id(self) -> str:
        """A short text that distinguishes two tokens of one owner."""
        return self.digest[:8]

    def line(self) -> str:
        rights = ",".join(one for one in Right if one in self.rights)
        return f"{self.name} {rights} {told_moment(self.expires)} {self.digest}\n"


def new_token() -> str:
    """Return a random token of 256 bits."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(token: str, key: bytes) -> str:
    return hmac.digest(key, token.encode("utf-8", "surrogateescape"), "sha256").hex()


def check_name(name: str) -> str:
    if not _NAME.match(name) or name == NOBODY:
        raise UsageError(
            f"{name[:70]!r} cannot be the name of an owner: up to 64 letters, digits, _ . and -, "
            f"and not {NOBODY!r}"
        )
    return name


def check_strength(token: str, place: str) -> str:
    """Raise UsageError if the token could be guessed. Tokens must be random, not chosen."""
    if len(token) < _LEAST_CHARACTERS or len(set(token)) < _LEAST_DIFFERENT:
        raise UsageError(
            f"the token in {place} is too weak: {_LEAST_CHARACTERS} characters at least, "
            f"{_LEAST_DIFFERENT} of them different; `caudal token new NAME` makes a strong one"
        )
    return token


def rights_of(text: str) -> frozenset[Right]:
    """Return the rights that a text lists.

    >>> sorted(rights_of("submit,read"))
    [<Right.READ: 'read'>, <Right.SUBMIT: 'submit'>]
    """
    words = [one.strip() for one in text.split(",")]
    if unknown := [one for one in words if one not in set(Right)]:
        raise UsageError(f"{unknown[0][:40]!r} is not a right: choose from {', '.join(Right)}")
    return frozenset(Right(one) for one in words)


def told_moment(moment: float | None) -> str:
    return NEVER if moment is None else datetime.fromtimestamp(moment, UTC).strftime(_MOMENT)


def moment_of(text: str) -> float | None:
    if text == NEVER:
        return None
    try:
        return datetime.strptime(text, _MOMENT).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise UsageError(f"write {NEVER} or a moment like 2027-01-31T00:00:00Z") from None


def encode(entries: tuple[TokenEntry, ...]) -> str:
    return HEADING + "".join(one.line() for one in entries)


def decode(text: str, where: str) -> tuple[TokenEntry, ...]:
    """Return the entries of a file. A UsageError names the wrong line and what to do."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    found = tuple(
        _entry(line, f"{where}, line {number}")
        for number, line in lines
        if line and not line.startswith("#")
    )
    if len(found) > MOST_TOKENS:
        raise UsageError(f"{where} holds {len(found)} tokens: at most {MOST_TOKENS} are allowed")
    return found


def is_gateways_line(line: str) -> bool:
    """Return whether this is a line of a gateway's file, which holds no token."""
    words = line.split()
    return len(words) == 4 and bool(_DIGEST.match(words[3]))


def _entry(line: str, where: str) -> TokenEntry:
    words = line.split()
    if not is_gateways_line(line):
        raise UsageError(
            f"{where}: no line of this form: `name rights expires digest`. Lines `name:token` are "
            "of an older form: move the file away and make each token with `caudal token new NAME` "
            "(--from FILE keeps a token that clients have)"
        )
    name, rights, expires, digest = words
    try:
        return TokenEntry(check_name(name), rights_of(rights), moment_of(expires), digest)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
