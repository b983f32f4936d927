"""TLS: a server's certificate, which follows changes of its files, and the client's trust."""

import ssl
from pathlib import Path

from caudal.errors import UsageError
from caudal.process.watched_files import Followed


class Certificate:
    """A server's certificate and key. For one thread."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._context = _server_context()
        self._followed = Followed([certificate, key], self._load)

    @property
    def is_stale(self) -> bool:
        return self._followed.is_stale

    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection."""
        self._followed.now()
        return self._context

    def _load(self) -> None:
        """Load the files. The context is replaced only if certificate and key match."""
        context = _server_context()
        try:
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except OSError as error:  # includes SSLError
            raise UsageError(
                f"the certificate {self._certificate} with the key {self._key} cannot be used: "
                f"{error.strerror or error}; give PEM files that belong together"
            ) from None
        self._context = context


def client_context(ca: Path) -> ssl.SSLContext:
    """Return a context that trusts the certificates in this file and nothing else."""
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise UsageError(
            f"the certificates in {ca} cannot be used: {error.strerror or error}; give a PEM file"
        ) from None


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    """Refuse a key with a password: the process would wait for a person to type it."""
    raise UsageError("the key has a password: use one without, readable by this user only")
