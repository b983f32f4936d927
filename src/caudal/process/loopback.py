"""Loopback names and addresses, which only this machine can reach."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether this is the name or the address of the loopback interface.

    >>> [is_loopback(one) for one in ("localhost", "127.9.9.9", "::1", "0.0.0.0", "x.org", "")]
    [True, True, True, False, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def names_loopback(header: str | None) -> bool:
    """Return whether a Host header names this machine itself.

    A server without tokens answers no other. In DNS rebinding, a web page's name is made to point
    at 127.0.0.1; its requests then carry that page's name.

    >>> [names_loopback(one) for one in ("localhost:8421", "[::1]:8421", "evil.org:8421", None)]
    [True, True, False, False]
    """
    text = header or ""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    return is_loopback(host) and (not port or (port.isascii() and port.isdecimal()))
