"""Hints: which rows of a scan no query keeps, once the other sides of its joins are complete.

`sql/footprint.py` answers the same for the embedded engine, table by table. Both rest on what a
join does with rows that have no partner (`algebra.Join.needs_partner`). A hint differs in one
point: it compares with the output of a stage, which exists only while the plan runs.

Rules
1. Only the first key of a partitioning is compared: rows that match in all keys match in the first.
2. A scan may drop a row only if every stage that reads it would. Each read of the scan, in every
   query, must be a side of a join that needs a partner, on the partition key of the scan. The keys
   to compare with are those of all these joins together.
3. Between the scan and the join, rows may be filtered, projected and grouped by the key, because
   these treat rows of different keys apart. After anything else, `PlacedRows.read` is None.
4. A scan with LIMIT gets no hint: another row would take the place of a dropped one.
"""

from dataclasses import replace

from caudal.sql.planner.plan import Hint
from caudal.sql.planner.select_block import canonical
from caudal.sql.planner.stage_registry import StageDraft, StageRead, StageRegistry


def make_hints(registry: StageRegistry) -> tuple[Hint, ...]:
    """Return the hints of all scans that can have one.

    Example::

        query:
            SELECT id FROM sales WHERE shop IN (SELECT shop FROM shops WHERE size > 1)
        plan:
            scan1   each batch of sales: read -> hashed by scan1_shop
                    may skip rows whose key is not in scan2, once complete
            scan2   each batch of shops: filter -> hashed by scan2_shop
                    may skip rows whose key is not in scan1, once complete
            fold1   each partition of scan1, scan2: semi join -> gathered
            finish  all of fold1: read
    """
    made = []
    for draft in registry.drafts.values():
        reads = [read for read in registry.reads if read.stage == draft.name]
        hint = _hint(draft, reads, registry) if reads else None
        if hint is not None:
            made.append(hint)
    return tuple(made)


def _hint(draft: StageDraft, reads: list[StageRead], registry: StageRegistry) -> Hint | None:
    if draft.place != "scan" or draft.kind != "hash" or draft.block.is_cut:
        return None
    key = draft.written_keys[0]
    if draft.block.group is not None and key not in draft.block.group:
        return None
    sources = []
    for read in reads:
        if read.matched is None:
            return None
        other = registry.draft(read.matched)
        if not other.keys or other.keys[0] in other.hidden:
            return None
        sources.append((other.name, other.keys[0]))
    condition = f"{key} IN (SELECT key FROM caudal_hint)"
    hinted = replace(draft.block, where=(*draft.block.where, condition))
    (body,) = canonical([hinted.body()])
    together = tuple(dict.fromkeys(sources))
    return Hint(draft.name, together, reads[0].type, draft.sql_over(body), key)
