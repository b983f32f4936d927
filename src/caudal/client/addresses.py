"""Where the gateways are, and the token that they ask for."""

import ipaddress
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from caudal.errors import UsageError

GATEWAY_VARIABLE = "CAUDAL_GATEWAY"
TOKEN_FILE_VARIABLE = "CAUDAL_TOKEN_FILE"


def addresses_of(given: str | Sequence[str] | None, environment: Mapping[str, str]) -> list[str]:
    """The addresses of gateways, given as a list or separated by commas.

    >>> addresses_of("http://one:8421/, two:8421", {})
    ['http://one:8421', 'http://two:8421']
    """
    given = given or environment.get(GATEWAY_VARIABLE, "")
    texts = given.split(",") if isinstance(given, str) else given
    found = [_address(text.strip()) for text in texts if text.strip()]
    if not found:
        raise UsageError(f"no gateway: give --gateway URL[,URL...], or set {GATEWAY_VARIABLE}")
    return list(dict.fromkeys(found))


def _address(text: str) -> str:
    address = (text if "://" in text else f"http://{text}").rstrip("/")
    try:
        parts = urlsplit(address)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        sound = False
    if "@" in text:  # which is not repeated here
        raise UsageError("a gateway's address holds no names or passwords: use --token-file")
    if not sound or parts.query or parts.fragment:
        raise UsageError(f"the gateway's address {text!r} is no URL: write it as http://HOST:PORT")
    return address


def is_loopback(address: str) -> bool:
    """Is this gateway on this machine?"""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> str | None:
    """The first token of a file, written as for a gateway: TOKEN or NAME:TOKEN on a line."""
    chosen = path or environment.get(TOKEN_FILE_VARIABLE)
    if not chosen:
        return None
    try:
        lines = Path(chosen).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"the token file {chosen} cannot be read: {reason}") from None
    tokens = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    return checked_token(tokens[0].rpartition(":")[2].strip() if tokens else "", str(chosen))


def checked_token(token: str, place: str) -> str:
    """A token that can stand in a header."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"{place} holds no token: it is one line of letters and digits")
    return token
