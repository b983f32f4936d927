"""How to reach an S3 server: read once at the process's entry, and never shown.

obstore looks at the environment by itself for whatever it is not told, an endpoint or a session
token that belongs to something else included. So it is told everything that decides whom it talks
to, and as whom.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from caudal.errors import UsageError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Credential
    from obstore.store import S3Config as Config


@dataclass(frozen=True)
class S3Settings:
    """Endpoint, credentials and patience. Nothing secret is in its repr.

    Without an access key, the machine's own role is used (container or instance metadata).
    """

    endpoint: str | None = None
    """The server's URL, `https://host[:port]`; None for Amazon's own."""

    region: str = "us-east-1"
    """Part of every signature; most other servers take any."""

    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    connect_timeout_seconds: float = 5.0
    timeout_seconds: float = 120.0
    """For one request with its body: the largest object must travel in this time."""

    retries: int = 5
    """How often one request is repeated after a 5xx answer or a broken connection."""

    retry_seconds: float = 30.0
    """No repeat begins later than this after the request's beginning."""

    def __post_init__(self) -> None:
        if (self.access_key is None) != (self.secret_key is None):
            raise UsageError("S3 needs the access key and the secret key, or neither")
        if self.endpoint is not None:
            _check_endpoint(self.endpoint)
        if min(self.connect_timeout_seconds, self.timeout_seconds) <= 0 or self.retries < 0:
            raise UsageError("S3's timeouts must be positive, and retries not negative")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "S3Settings":
        """From the variables that Amazon's own tools read (AWS_ENDPOINT_URL, AWS_REGION, ...)."""
        given = os.environ if environment is None else environment
        return cls(
            endpoint=given.get("AWS_ENDPOINT_URL_S3") or given.get("AWS_ENDPOINT_URL") or None,
            region=given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION") or "us-east-1",
            access_key=given.get("AWS_ACCESS_KEY_ID") or None,
            secret_key=given.get("AWS_SECRET_ACCESS_KEY") or None,
            session_token=given.get("AWS_SESSION_TOKEN") or None,
        )

    def config(self) -> "Config":
        """For obstore: whom to ask. Single deletes and addresses by path work on every server."""
        endpoint = self.endpoint or f"https://s3.{self.region}.amazonaws.com"
        return {
            "endpoint": endpoint,
            "aws_endpoint_url_s3": endpoint,
            "region": self.region,
            "virtual_hosted_style_request": False,
            "skip_signature": False,
            "s3_express": False,
            "unsigned_payload": False,
            "disable_bulk_delete": True,
        }

    def credential_provider(self) -> "Callable[[], S3Credential] | None":
        """For obstore: as whom to ask; None for the machine's own role."""
        if self.access_key is None or self.secret_key is None:
            return None
        credential: S3Credential = {
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "token": self.session_token,
            "expires_at": None,
        }
        return lambda: credential

    def client_options(self) -> "ClientConfig":
        """For obstore: timeouts."""
        return {
            "allow_http": self.endpoint is not None and self.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=self.connect_timeout_seconds),
            "timeout": timedelta(seconds=self.timeout_seconds),
        }

    def retry_config(self) -> "RetryConfig":
        """For obstore: bounded repeats."""
        backoff = {"init_backoff": timedelta(milliseconds=50), "max_backoff": timedelta(seconds=2)}
        return {
            "max_retries": self.retries,
            "retry_timeout": timedelta(seconds=self.retry_seconds),
            "backoff": {**backoff, "base": 2},  # type: ignore[typeddict-item]
        }


def _check_endpoint(endpoint: str) -> None:
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError("the S3 endpoint must be a URL such as https://host:port")
    if parts.username is not None or parts.password is not None:
        raise UsageError("the S3 endpoint must not hold credentials: give them as settings")
