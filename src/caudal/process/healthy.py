"""The health check of a container: `python -m caudal.process.healthy`, without other modules.

`caudal member` writes the address to ask into the file that CAUDAL_HEALTH names: an URL that must
answer 200, or tcp://HOST:PORT that must greet. Without the file there is nothing to ask.
"""

import os
import socket
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

_SECONDS = 8.0


def is_healthy(address: str) -> bool:
    """Return whether whoever listens at this address of this machine answers."""
    try:
        if address.startswith("tcp:"):
            where = urlsplit(address)
            with socket.create_connection((where.hostname, where.port), _SECONDS) as connection:
                return connection.recv(1) != b""
        anybody = ssl._create_unverified_context()  # it asks itself, by an address of loopback
        with urlopen(address, timeout=_SECONDS, context=anybody) as answer:
            return int(answer.status) == 200
    except OSError:
        return False


def main() -> int:
    try:
        address = Path(os.environ.get("CAUDAL_HEALTH", "")).read_text(encoding="ascii")
    except OSError:
        return 0
    return 0 if is_healthy(address) else 1


if __name__ == "__main__":
    sys.exit(main())
