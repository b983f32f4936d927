"""The settings for an S3 server. They are read once when the process starts, and never shown.

obstore reads every setting that it is not given from the environment. That may be an endpoint or a
session token meant for another program. So Caudal always passes every setting that selects the
server or the identity.
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
    """Endpoint, credentials, timeouts and retries. Its repr contains no secret.

    Without an access key, the role of the machine is used (container or instance metadata).
    """

    endpoint: str | None = None
    """The server's URL, `https://host[:port]`; None for Amazon S3."""

    region: str = "us-east-1"
    """Part of every signature. Most other servers accept any region."""

    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    connect_timeout_seconds: float = 5.0
    timeout_seconds: float = 120.0
    """The limit for one request with its body.

    The largest object must be sent within this time.
    """

    silent_seconds: float = 15.0
    """The longest wait for the server's next byte, where a request may be given up (s3.py, rule 5).

    A network that fails for seconds leaves connections on which TCP tries again a minute later. A
    request that is given up is repeated on a new one.
    """

    retries: int = 5
    """The maximum number of repeats of one request after a 5xx answer or a broken connection."""

    retry_seconds: float = 30.0
    """The time after the start of a request in which repeats may start."""

    def __post_init__(self) -> None:
        if (self.access_key is None) != (self.secret_key is None):
            raise UsageError("S3 needs both the access key and the secret key, or neither")
        if self.endpoint is not None:
            _check_endpoint(self.endpoint)
        times = (self.connect_timeout_seconds, self.timeout_seconds, self.silent_seconds)
        if min(times) <= 0 or self.retries < 0:
            raise UsageError("S3 timeouts must be positive; retries must not be negative")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "S3Settings":
        """Read the settings from the variables that Amazon tools use (AWS_REGION, ...)."""
        given = os.environ if environment is None else environment
        return cls(
            endpoint=given.get("AWS_ENDPOINT_URL_S3") or given.get("AWS_ENDPOINT_URL") or None,
            region=given.get("AWS_REGION") or given.get("AWS_DEFAULT_REGION") or "us-east-1",
            access_key=given.get("AWS_ACCESS_KEY_ID") or None,
            secret_key=given.get("AWS_SECRET_ACCESS_KEY") or None,
            session_token=given.get("AWS_SESSION_TOKEN") or None,
        )

    def config(self) -> "Config":
        """Return the server settings for obstore.

        Single deletes and path-style addresses are used because they work on every server.
        """
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
        """Return the credentials for obstore, or None to use the role of the machine."""
        if self.access_key is None or self.secret_key is None:
            return None
        credential: S3Credential = {
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "token": self.session_token,
            "expires_at": None,
        }
        return lambda: credential

    def client_options(self, *, patient: bool = False) -> "ClientConfig":
        """Return the timeouts for obstore; a patient client takes any silence."""
        options: ClientConfig = {
            "allow_http": self.endpoint is not None and self.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=self.connect_timeout_seconds),
            "timeout": timedelta(seconds=self.timeout_seconds),
        }
        if not patient:
            options["read_timeout"] = timedelta(seconds=self.silent_seconds)
        return options

    def retry_config(self) -> "RetryConfig":
        """Return the limits on repeats for obstore."""
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
