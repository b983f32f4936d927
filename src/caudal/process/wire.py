"""Signed messages between the processes of one cluster.

Rules
1. Every message carries a keyed digest, so nobody without the cluster's secret can send one.
2. No message can be replayed. Over TCP the digest covers a random nonce that the listener chose
   for this connection, and the message's number on it. A heartbeat (UDP) names the session that
   the medic chose when it started, and a sequence number that only grows.
3. A message that does not verify is dropped without an answer.
"""

import hmac
import secrets
from pathlib import Path

from caudal.errors import UsageError
from caudal.process.privacy import private_file

DIGEST_BYTES = 16
NONCE_BYTES = 16
LENGTH_BYTES = 4
FRAME_MOST = 1 << 20


class Seal:
    """Signs and verifies with one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def close(self, payload: bytes, context: bytes = b"") -> bytes:
        return self._digest(payload, context) + payload

    def open(self, sealed: bytes, context: bytes = b"") -> bytes | None:
        """Return the payload; None if it was not signed with the secret in this context."""
        digest, payload = sealed[:DIGEST_BYTES], sealed[DIGEST_BYTES:]
        return payload if hmac.compare_digest(digest, self._digest(payload, context)) else None

    def _digest(self, payload: bytes, context: bytes) -> bytes:
        head = len(context).to_bytes(4, "big") + context
        return hmac.digest(self._secret, head + payload, "sha256")[:DIGEST_BYTES]


class Frames:
    """One direction of one connection: frames with their numbers under the listener's nonce."""

    def __init__(self, seal: Seal, nonce: bytes, direction: bytes) -> None:
        self._seal = seal
        self._context = direction + nonce
        self._number = 0

    def close(self, payload: bytes) -> bytes:
        """Return a frame, ready to be sent."""
        sealed = self._seal.close(payload, self._next())
        return len(sealed).to_bytes(LENGTH_BYTES, "big") + sealed

    def open(self, sealed: bytes) -> bytes | None:
        """Return the payload of a frame, its length already read."""
        return self._seal.open(sealed, self._next())

    def _next(self) -> bytes:
        self._number += 1
        return self._context + self._number.to_bytes(8, "big")


def read_secret(path: Path) -> bytes:
    """Read the cluster's secret."""
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"cannot read the cluster's secret {path}: {error.strerror}") from error
    if len(secret) < 16:
        raise UsageError(f"the cluster's secret in {path} is too short: at least 16 characters")
    return secret


def make_secret(path: Path) -> None:
    """Create a secret that only this user can read, unless there is one."""
    if not path.exists():
        private_file(path)
        path.write_text(secrets.token_hex(32) + "\n", encoding="ascii")
