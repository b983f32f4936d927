"""Who asks: the owner and the rights that a bearer token stands for.

Rules
1. A token is never kept, logged or stored. Gateways know its digest under the cluster's key, and
   the name of its line is the owner in job.json: so a token can be replaced, and jobs stay.
2. Every known digest is compared, each in constant time: how long it takes says nothing.
3. The file is read again when it changes: a token that was revoked is refused a second later.
4. Without a file everybody is the same owner with all rights; then the gateway listens on loopback
   only, and answers to loopback's names only (application.py).
"""

import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from caudal.errors import UsageError
from caudal.formats.tokens import NOBODY, Right, TokenEntry, digest_of
from caudal.gateway.refusals import Refusal
from caudal.process.loopback import is_loopback
from caudal.process.tokens import Known, key_path, read_entries, read_known
from caudal.process.watched_files import Followed

_SCHEME = "bearer "


@dataclass(frozen=True)
class Caller:
    """Whose request this is, and what it may ask for."""

    owner: str
    rights: frozenset[Right]

    @property
    def is_admin(self) -> bool:
        return Right.ADMIN in self.rights


STRANGER = Caller("", frozenset({Right.READ}))  # who asks what needs no token
EVERYBODY = Caller(NOBODY, frozenset(Right))  # where nobody is asked for a token


class Tokens:
    """The tokens that are known. Without any, nobody is asked for one."""

    def __init__(
        self,
        known: Callable[[], Known] | None = None,
        now: Callable[[], float] = time.time,
        is_stale: Callable[[], bool] = lambda: False,
    ) -> None:
        self._known = known
        self._now = now
        self.is_stale = is_stale

    @classmethod
    def of_file(cls, path: Path) -> "Tokens":
        """Those of a file, which is followed. Later it may become empty: all were revoked."""
        if not read_entries(path):
            raise UsageError(
                f"the token file {path} holds no token: `caudal token new NAME` adds one"
            )
        followed = Followed([path, key_path(path)], lambda: read_known(path))
        return cls(followed.now, is_stale=lambda: followed.is_stale)

    @property
    def required(self) -> bool:
        return self._known is not None

    def names(self) -> tuple[str, ...]:
        """All owners, in the order of the file."""
        if self._known is None:
            return (NOBODY,)
        return tuple(dict.fromkeys(one.name for one in self._known().entries))

    def caller(self, authorization: str | None) -> Caller:
        """Whose request this is; a Refusal if its token is missing, unknown or over."""
        if self._known is None:
            return EVERYBODY
        given = authorization or ""
        if given[: len(_SCHEME)].lower() != _SCHEME:
            raise _unknown("send a token that this gateway knows: Authorization: Bearer TOKEN")
        found = self._entry(given[len(_SCHEME) :].strip(), self._known())
        if found is None:
            raise _unknown("this gateway does not know that token: ask its operator for one")
        if found.expires is not None and found.expires <= self._now():
            raise _unknown("this token has expired: ask for another", "token_expired")
        return Caller(found.name, found.rights)

    def _entry(self, token: str, known: Known) -> TokenEntry | None:
        asked = digest_of(token, known.key)
        same = [one for one in known.entries if hmac.compare_digest(one.digest, asked)]
        return same[0] if same else None


def _unknown(message: str, code: str = "no_token") -> Refusal:
    return Refusal(401, code, message, headers={"www-authenticate": "Bearer"})


def check_host(host: str, tokens: Tokens) -> None:
    """Refuse to serve the world without tokens."""
    if not tokens.required and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines: give --token-file, or use --host 127.0.0.1"
        )
