"""The same session as that of the short tests."""

from tests.spark.conftest import generated, session

__all__ = ["generated", "session"]
