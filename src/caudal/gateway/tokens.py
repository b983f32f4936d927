"""Who may ask: bearer tokens from a file, and the owner that each of them stands for.

Rules
1. A token is never kept, logged or stored: only its digest is, which is the owner in job.json.
2. Every known digest is compared, each in constant time: how long it takes says nothing.
3. Without a file everybody is the same owner; then the gateway listens on loopback only.
"""

import hmac
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from caudal.errors import UsageError
from caudal.formats.digest import digest

NOBODY = "local"  # the owner of jobs of a gateway without tokens
_SCHEME = "bearer "


@dataclass(frozen=True)
class Tokens:
    """The digests of the tokens that are known; None: nobody is asked for one."""

    owners: tuple[str, ...] | None = None

    def owner(self, authorization: str | None) -> str | None:
        """Whose request this is; None if its token is missing or unknown."""
        if self.owners is None:
            return NOBODY
        given = authorization or ""
        if given[: len(_SCHEME)].lower() != _SCHEME:
            return None
        asked = digest(given[len(_SCHEME) :].strip().encode())
        found = [owner for owner in self.owners if hmac.compare_digest(owner, asked)]
        return found[0] if found else None


def read_tokens(path: Path) -> Tokens:
    """A line is `name:token` or a token; empty lines and those that begin with # do not count."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"the token file {path} cannot be read: {reason}") from None
    owners = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            token = line.strip().rpartition(":")[2].strip()
            if not token or not token.isascii() or not token.isprintable() or " " in token:
                raise UsageError(f"{path}, line {number}: no token; write `name:token`, no spaces")
            owners.append(digest(token.encode()))
    if not owners:
        raise UsageError(f"the token file {path} holds no token: write a line `name:token`")
    return Tokens(tuple(dict.fromkeys(owners)))


def check_host(host: str, tokens: Tokens) -> None:
    """Refuse to serve the world without tokens."""
    if tokens.owners is None and not _is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines: give --token-file, or use --host 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
