"""The same session as that of the short tests, and a port for servers of Spark."""

import socket

import pytest

from tests.spark.conftest import generated, java, session

__all__ = ["generated", "java", "port", "session"]


@pytest.fixture(scope="module")
def port(java: None) -> int:
    return free_port()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found: int = free.getsockname()[1]
        return found
