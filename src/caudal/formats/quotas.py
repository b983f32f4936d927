"""The table `[quotas]` of cluster.toml: how much of a cluster one owner may use at once."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from caudal.errors import UsageError
from caudal.formats.tokens import check_name
from caudal.sizes import parse_bytes, told_bytes
from caudal.toml import TomlError, decode_toml


class Quota(StrEnum):
    """The limited resources. Each gateway counts the first three; the store has the others."""

    REQUESTS = "requests"  # in progress at once
    UPLOADS = "uploads"  # bytes of request bodies in progress at once
    STREAMS = "streams"  # events and previews open at once
    JOBS = "jobs"  # running
    KEPT = "kept"  # all jobs: running ones, and ended ones whose results are kept
    STORED = "stored"  # bytes of all objects of an owner's jobs


USUAL_GATEWAYS = 2  # for a host without a number
SIZES = frozenset({Quota.UPLOADS, Quota.STORED})
IN_STORE = (Quota.JOBS, Quota.KEPT, Quota.STORED)


class Share(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Quotas as written in the file. The general quota applies where one is not given."""

    requests: int | None = None
    uploads: str | None = None
    streams: int | None = None
    jobs: int | None = None
    kept: int | None = None
    stored: str | None = None

    def given(self) -> dict[Quota, int]:
        """Return the quotas that are given, as numbers."""
        found = {one: getattr(self, one) for one in Quota}
        return {
            one: parse_bytes(value) if isinstance(value, str) else value
            for one, value in found.items()
            if value is not None
        }


class Quotas(Share, frozen=True, forbid_unknown_fields=True):
    """The general quotas, and those of single owners."""

    owners: dict[str, Share] = {}
    gateways: int | None = None  # that share an owner's STORED quota; default: from [hosts]


NONE_GIVEN = Quotas()


@dataclass(frozen=True)
class Allowances:
    """Quotas as gateways apply them; None: no limit."""

    everybody: dict[Quota, int | None]
    owners: dict[str, dict[Quota, int]]

    def of(self, owner: str, quota: Quota) -> int | None:
        return self.owners.get(owner, {}).get(quota, self.everybody[quota])

    def bounds(self, quota: Quota) -> bool:
        """Return whether any owner has this limit."""
        named = any(quota in share for share in self.owners.values())
        return named or self.everybody[quota] is not None

    @classmethod
    def by(cls, quotas: Quotas, usual: dict[Quota, int | None]) -> "Allowances":
        named = {name: share.given() for name, share in quotas.owners.items()}
        return cls({**usual, **quotas.given()}, named)


def complaints(quotas: Quotas) -> list[str]:
    """Return errors that the types cannot express."""
    found = []
    for where, share in (("[quotas]", quotas), *_named(quotas)):
        try:
            wrong = [one for one, value in share.given().items() if value < 0]
        except UsageError as error:
            found.append(f"{where} {error}")
        else:
            found += [f"{where} {one} cannot be negative" for one in wrong]
    if quotas.gateways is not None and quotas.gateways < 1:
        found.append("[quotas] gateways must be 1 at least")
    for name in quotas.owners:
        try:
            check_name(name)
        except UsageError as error:
            found.append(f"[quotas.owners] {error}")
    return found


def _named(quotas: Quotas) -> list[tuple[str, Share]]:
    return [(f"[quotas.owners.{name}]", share) for name, share in quotas.owners.items()]


class _Settings(msgspec.Struct):
    """What gateways follow of cluster.toml. The start of the cluster checks the rest."""

    quotas: Quotas = NONE_GIVEN
    hosts: Any = None


def read_quotas(path: Path) -> Quotas:
    """Read the table from a file. Raise a UsageError that says what to correct."""
    try:
        settings = decode_toml(path.read_bytes(), _Settings)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except TomlError as error:
        raise UsageError(f"{path}: {error}") from None
    quotas = settings.quotas
    for complaint in complaints(quotas):
        raise UsageError(f"{path}: {complaint}")
    if quotas.gateways is None:
        return msgspec.structs.replace(quotas, gateways=_hosted_gateways(settings.hosts))
    return quotas


def _hosted_gateways(hosts: object) -> int:
    """Return how many gateways a cluster has."""
    each = hosts.values() if isinstance(hosts, dict) else ()
    counts = (one.get("gateways", USUAL_GATEWAYS) for one in each if isinstance(one, dict))
    return max(1, sum(count for count in counts if isinstance(count, int)))


def told(quota: Quota, value: int | None) -> str:
    """Return an amount as text for a message."""
    if value is None:
        return "no bound"
    return told_bytes(value) if quota in SIZES else str(value)
