"""What a user may write for a broker, and what is said about the rest, without the password."""

import pytest

from caudal.broker.memory import MemoryBroker
from caudal.broker.open_broker import open_broker, read_settings
from caudal.errors import UsageError


def test_defaults() -> None:
    settings = read_settings("amqp://localhost")
    (address,) = settings.addresses
    assert (address.host, address.port, address.user, address.vhost) == (
        "localhost", 5672, "guest", "/",
    )  # fmt: skip
    assert settings.prefix == "caudal"
    assert isinstance(open_broker("memory:"), MemoryBroker)


def test_everything_can_be_said() -> None:
    url = "amqps://me:p%40ss%2F@[::1]:99/my%2Fhost?prefix=blue"
    settings = read_settings(url)
    (address,) = settings.addresses
    assert (address.password, address.vhost, address.tls) == ("p@ss/", "my/host", True)
    assert str(address) == "[::1]:99"
    assert address.url(heartbeat=1) == "amqps://me:p%40ss%2F@[::1]:99/my%2Fhost?heartbeat=1"
    assert settings.prefix == "blue"
    assert "p@ss" not in repr(settings)
    assert address.censored("amqp://me:p%40ss%2F@x p@ss/") == "amqp://me:***@x ***"


def test_a_cluster_is_several_urls() -> None:
    settings = read_settings("amqp://a, amqp://b:1,amqp://c")
    assert [str(one) for one in settings.addresses] == ["a:5672", "b:1", "c:5672"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "is not valid"),
        ("localhost:5672", "is not valid"),
        ("http://me:secret@host", "is not valid"),
        ("amqp://me:secret@", "is not valid"),
        ("amqp://me:secret@host:port/", "port must be a number"),
        ("amqp://me:secret@host:70000/", "port must be a number"),
        ("amqp://me:secret@host/?heartbeat=9", r"takes \?prefix= only, not heartbeat"),
        ("amqp://me:secret@host/?prefix=a.b", "cannot be a prefix"),
        ("amqp://me:secret@host/?prefix=", "cannot be a prefix"),
        ("amqp://me:secret@a?prefix=x,amqp://b", "one prefix"),
    ],
)
def test_anything_else_is_refused_without_the_password(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        open_broker(url)
    assert "secret" not in str(refused.value)
