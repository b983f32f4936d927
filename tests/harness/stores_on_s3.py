"""Empty stores on a test server."""

import itertools
from collections.abc import Iterator

from caudal.store import S3Settings, S3Store, Store
from tests.harness.seaweed import S3Server


def s3_settings(server: S3Server) -> S3Settings:
    return S3Settings(
        endpoint=server.endpoint,
        region=server.region,
        access_key=server.access_key,
        secret_key=server.secret_key,
    )


def s3_stores(server: S3Server, name: str) -> Iterator[Store]:
    """As many as are wanted, each below a prefix of its own."""
    settings = s3_settings(server)
    prefix = "series/" + "".join(c if c.isalnum() else "-" for c in name)
    # The first object of a bucket makes the bucket; before that, listing it is an error.
    S3Store(server.bucket, prefix, settings).create("bucket", b"")
    return (S3Store(server.bucket, f"{prefix}/{n}", settings) for n in itertools.count())
