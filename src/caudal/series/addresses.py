"""HTTP addresses as text: whether one can be fetched, and how messages show it. Pure."""

from urllib.parse import urlsplit

SCHEMES = ("http", "https")


def is_address(text: str) -> bool:
    """Return whether a text is meant as an address, and not as the name of a file."""
    return text.lower().startswith(("http://", "https://"))


def address_problem(address: str) -> str:
    """Return what is wrong with an address, or an empty string."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in SCHEMES or not host:
        return "is not an address: it must begin with https:// or http:// and a host"
    if "@" in parts.netloc:
        return "contains a user or a password: use an address without them"
    if any(not " " < letter < "\x7f" for letter in address):
        return "contains a space or a letter that addresses encode, such as %20 for a space"
    return ""


def told_address(address: str) -> str:
    """Return an address without what may be secret."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def address_name(address: str) -> str:
    """Return the last name in an address, as that of a file."""
    parts = urlsplit(address)
    return parts.path.rstrip("/").rpartition("/")[2] or parts.hostname or ""
