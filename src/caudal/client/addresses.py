"""Addresses of gateways, and the token and certificates for them."""

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
    """Return the addresses of gateways, given as a list or separated by commas.

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
    if "@" in text:  # the text is not repeated in the message: it may hold a password
        raise UsageError(
            "a gateway's address must not contain a user or password: use --token-file"
        )
    if not sound or parts.query or parts.fragment:
        raise UsageError(f"the gateway's address {text!r} is not a URL: write http://HOST:PORT")
    return address


def is_loopback(address: str) -> bool:
    """Return whether this gateway is on this machine."""
    return loopback.is_loopback(urlsplit(address).hostname or "")


def in_clear(addresses: Sequence[str]) -> str | None:
    """Return an address to which the connection is not encrypted, if there is one.

    >>> in_clear(["https://one:8421", "http://127.0.0.1:8421", "http://two:8421"])
    'http://two:8421'
    """
    return next(
        (one for one in addresses if one.startswith("http:") and not is_loopback(one)), None
    )


def warning_of(token: str | None, addresses: Sequence[str]) -> str | None:
    """Return what a person is told of a token that others on its way can read, if it is one.

    >>> warning_of("secret", ["http://one:8421"])
    'the token goes to http://one:8421 unencrypted: use https'
    """
    open_ = in_clear(addresses) if token else None
    return f"the token goes to {open_} unencrypted: use https" if open_ else None


def read_token(path: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> str | None:
    """Return the token of the client's file; None if no file is named."""
    chosen = path or environment.get(TOKEN_FILE_VARIABLE)
    return read_bearer(Path(chosen)) if chosen else None


def read_ca(
    path: str | os.PathLike[str] | None, environment: Mapping[str, str]
) -> ssl.SSLContext | None:
    """Return the trusted certificates of a file; None (those of the system) if no file is named."""
    chosen = path or environment.get(CA_VARIABLE)
    return client_context(Path(chosen)) if chosen else None
