"""Vacuum: delete old numbered manifests of consolidations. Events and their manifests stay.

Every consolidation of a month leaves three manifests. Readers need only the newest one and, while
it is `in_progress`, the committed one that it calls `standing`.

Rules
1. Per month, the newest three numbers stay, so that a damaged one can be moved away; so do
   `standing` and all later ones, and all that are younger than `keep`.
2. Numbers are deleted from the lowest on. So a number is free again only after every lower one.
3. A process that was frozen for long may create a number that was deleted. It would believe that
   the number is its own. So a create counts only if the manifest that it follows is still there
   afterwards (Catalog.follows): if the number had been deleted, then the one before it had been
   deleted too. What such a process left is older than the newest manifest, so no reader uses it.
   If the vacuum ran only after the create, newer manifests are there, and to give way is right too.
4. A reader whose manifest disappears reads the newest one again.

Ages only decide what people may still want to see. No rule depends on a clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from caudal.series.catalog import Catalog
from caudal.series.layout import Month
from caudal.series.manifest import ConsolidationManifest
from caudal.store.port import Entry

_KEPT = 3


@dataclass(frozen=True)
class SeriesVacuumReport:
    """What a vacuum deleted."""

    manifests: int
    months: int


def deletable(
    numbered: Mapping[int, Entry], newest: ConsolidationManifest, before: float
) -> list[str]:
    """Return the keys of the manifests to delete, in this order. What came after `before` stays."""
    needed = min(newest.number - _KEPT + 1, newest.standing or newest.number)
    keys = []
    for number, entry in sorted(numbered.items()):
        if number >= needed or entry.modified > before:
            break
        keys.append(entry.key)
    return keys


def vacuum_series(catalog: Catalog, dataset_id: str, keep: float) -> SeriesVacuumReport:
    """Delete the manifests that no reader needs and that are older than `keep` seconds."""
    clock = catalog.store.time()
    before = (catalog.clock().timestamp() if clock is None else clock) - keep
    found = catalog.numbered_manifests(dataset_id)

    def prune(month: Month) -> int:
        newest = catalog.read_consolidation_manifest(month)
        keys = deletable(found[month], newest, before) if newest else []
        for key in keys:
            catalog.store.delete(key)
        return len(keys)

    counts = catalog.workers.each(prune, found)
    return SeriesVacuumReport(sum(counts), sum(map(bool, counts)))
