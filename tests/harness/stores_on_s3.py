"""Empty stores on a test server."""

import itertools
from collections.abc import Iterator

from caudal.store import S3Store, Store
from tests.harness.seaweed import S3Server


def s3_stores(server: S3Server, name: str) -> Iterator[Store]:
    """As many as are wanted, each below a prefix of its own."""
    prefix = "series/" + "".join(c if c.isalnum() else "-" for c in name)
    return (S3Store(server.bucket, f"{prefix}/{n}", server.settings) for n in itertools.count())
