"""How hosts notice that their cluster.toml differ, and in which keys.

A medic's heartbeat carries a short digest of every key that is not at its default. Values stay
secret (`broker` has a password): the digests are keyed with the cluster's secret. Hosts and their
counts are compared by the digest of the members (roster.py).
"""

from collections.abc import Mapping

import msgspec

from caudal.cluster.settings import ClusterSettings
from caudal.process.wire import Seal

_DIGEST_BYTES = 4
_KEYS = tuple(name for name in ClusterSettings.__struct_fields__ if name != "hosts")
_DEFAULTS = ClusterSettings(hosts={})


def digests_of(settings: ClusterSettings, seal: Seal) -> dict[str, str]:
    """Return a digest of each key that is not at its default."""
    found = {}
    for name in _KEYS:
        value = getattr(settings, name)
        if value != getattr(_DEFAULTS, name):
            sealed = seal.close(msgspec.json.encode(value), b"setting " + name.encode())
            found[name] = sealed[:_DIGEST_BYTES].hex()
    return found


def differing_keys(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Return the keys that differ; keys that only a newer version knows are left out."""
    return [name for name in _KEYS if mine.get(name) != theirs.get(name)]
