"""Authentication: the owner and the rights of a bearer token.

Rules
1. A token is never kept, logged or stored. Gateways know its digest under the cluster's key. The
   name of its entry is the owner in job.json, so a token can be replaced and its jobs remain.
2. Every known digest is compared, each in constant time, so that timing reveals nothing.
3. The file is read again when it changes: a revoked token is refused a second later.
4. Without a file every caller is the same owner with all rights. Then the gateway listens on
   loopback only, and answers to loopback names only (door.py).
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
    """The owner of a request and its rights."""

    owner: str
    rights: frozenset[Right]

    @property
    def is_admin(self) -> bool:
        return Right.ADMIN in self.rights


STRANGER = Caller("", frozenset({Right.READ}))  # for operations that need no token
EVERYBODY = Caller(NOBODY, frozenset(Right))  # for gateways without tokens


class Tokens:
    """The known tokens. Without any, no request needs one."""

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
        """Return the tokens of a file and follow its changes; the file may become empty later."""
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
        """Return all owners, in the order of the file."""
        if self._known is None:
            return (NOBODY,)
        return tuple(dict.fromkeys(one.name for one in self._known().entries))

    def caller(self, authorization: str | None) -> Caller:
        """Return the caller; raise Refusal if the token is missing, unknown or expired."""
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
    """Raise UsageError if other machines could reach a gateway without tokens."""
    if not tokens.required and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines: give --token-file, or use --host 127.0.0.1"
        )
