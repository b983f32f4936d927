"""Where the gateways are, and the token that they ask for."""

import os
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from caudal.errors import UsageError
from caudal.process import loopback
from caudal.process.certificates import client_context
from caudal.process.tokens import read_bearer

GATEWAY_VARIABLE = "CAUDAL_GATEWAY"
TOKEN_FILE_VARIABLE = "CAUDAL_TOKEN_FILE"
CA_VARIABLE = "CAUDAL_CA"


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
    return loopback.is_loopback(urlsplit(address).hostname or "")


def in_clear(addresses: Sequence[str]) -> str | None:
    """An address to which everybody on the way can listen, if there is one.

    >>> in_clear(["https://one:8421", "http://127.0.0.1:8421", "http://two:8421"])
    'http://two:8421'
    """
    return next(
        (one for one in addresses if one.startswith("http:") and not is_loopback(one)), None
    )


def read_token(path: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> str | None:
    """The token of a client's file; none if no file is named."""
    chosen = path or environment.get(TOKEN_FILE_VARIABLE)
    return read_bearer(Path(chosen)) if chosen else None


def read_ca(
    path: str | os.PathLike[str] | None, environment: Mapping[str, str]
) -> ssl.SSLContext | None:
    """Whom to trust: the certificates of a file; those of the system if no file is named."""
    chosen = path or environment.get(CA_VARIABLE)
    return client_context(Path(chosen)) if chosen else None
