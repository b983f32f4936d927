"""Open a broker from a URL. This is the only module that knows every kind of broker."""

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from caudal.broker.address import Address
from caudal.broker.embedded import EmbeddedBroker
from caudal.broker.memory import MemoryBroker
from caudal.broker.port import OpenedBroker
from caudal.broker.topology import PREFIX
from caudal.errors import UsageError

if TYPE_CHECKING:
    from caudal.broker.link import RabbitSettings  # loads the RabbitMQ library

_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_PORTS = {"amqp": 5672, "amqps": 5671}
EMBEDDED = "embedded:"
_HOW = "write amqp://user:password@host:5672/vhost, several nodes separated by commas"


def open_broker(url: str, name: str = "") -> OpenedBroker:
    """Return the broker that a URL names. The broker's list of connections shows `name`.

    `amqp://user:password@host:5672/vhost?prefix=caudal` is RabbitMQ (`amqps` with TLS). Several
    such URLs separated by commas are the nodes of one cluster. `embedded:FOLDER` is a file of
    queues for the processes of one host. `memory:` is a new broker in this process. Nothing is
    connected yet: a broker that cannot be reached now is not an error, because callers retry.

    Raises UsageError for anything else. No message repeats the URL, which may contain a password.
    """
    if url == "memory:":
        return MemoryBroker()
    if url.startswith(EMBEDDED):
        return EmbeddedBroker(_folder(url))
    from caudal.broker.rabbit import RabbitBroker

    return RabbitBroker(read_settings(url), name)


def _folder(url: str) -> Path:
    folder = Path(url.removeprefix(EMBEDDED))
    if not folder.is_absolute():
        raise UsageError("the folder of an embedded broker must be absolute: embedded:/path/to/it")
    return folder


def read_settings(url: str) -> "RabbitSettings":
    """Return the addresses and the prefix that a URL names."""
    from caudal.broker.link import RabbitSettings

    nodes = [_node(one.strip()) for one in url.split(",")]
    prefixes = {prefix for _, prefix in nodes}
    if len(prefixes) > 1:
        raise UsageError("the nodes of one broker need one prefix: give each URL the same ?prefix=")
    return RabbitSettings(tuple(address for address, _ in nodes), prefix=prefixes.pop())


def _node(url: str) -> tuple[Address, str]:
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname or parts.fragment:
        raise UsageError(f"the broker's URL is not valid: {_HOW}")
    address = Address(
        host=parts.hostname,
        port=_port(parts),
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest"),
        vhost=unquote(parts.path[1:]) or "/",
        tls=parts.scheme == "amqps",
    )
    return address, _prefix(parts)


def _port(parts: SplitResult) -> int:
    try:
        return parts.port or _PORTS[parts.scheme]
    except ValueError:
        raise UsageError(f"the broker's port must be a number up to 65535: {_HOW}") from None


def _prefix(parts: SplitResult) -> str:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    prefix = options.pop("prefix", PREFIX)
    if options:
        raise UsageError(f"the broker's URL takes ?prefix= only, not {', '.join(sorted(options))}")
    if not _PREFIX.match(prefix):
        raise UsageError(f"{prefix!r} cannot be a prefix of queues: use letters, digits, _ and -")
    return prefix
