"""How hosts notice that their cluster.toml differ, and in which keys.

A medic's heartbeat carries a short digest of every key that is not at its default, and of the
private broker's password. Values stay secret (`broker` has a password): the digests are keyed with
the cluster's secret. Hosts and their counts are compared by the digest of the members (roster.py).
"""

from collections.abc import Mapping

import msgspec

from caudal.cluster.settings import ClusterSettings
from caudal.process.wire import Seal

PASSWORD = "broker.password"  # the file, and its name among the keys

_DIGEST_BYTES = 4
_KEYS = tuple(name for name in ClusterSettings.__struct_fields__ if name != "hosts")
_DEFAULTS = ClusterSettings(hosts={})


def digests_of(settings: ClusterSettings, seal: Seal, password: str = "") -> dict[str, str]:
    """Return a digest of each key that is not at its default, and of the password if there is one.

    The password is that of the private broker.
    """
    values = {name: getattr(settings, name) for name in _KEYS}
    changed = {name: one for name, one in values.items() if one != getattr(_DEFAULTS, name)}
    told = changed | ({PASSWORD: password} if password else {})
    return {name: _digest(name, value, seal) for name, value in told.items()}


def _digest(name: str, value: object, seal: Seal) -> str:
    sealed = seal.close(msgspec.json.encode(value), b"setting " + name.encode())
    return sealed[:_DIGEST_BYTES].hex()


def differing_keys(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Return the keys that differ; keys that only a newer version knows are left out.

    Passwords are compared if both are told: an earlier version does not tell its own.
    """
    found = [name for name in _KEYS if mine.get(name) != theirs.get(name)]
    if PASSWORD in mine and PASSWORD in theirs and mine[PASSWORD] != theirs[PASSWORD]:
        found.append(PASSWORD)
    return found
