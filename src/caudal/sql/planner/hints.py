"""Which rows of a scan nobody can keep, once the other sides of its joins are complete.

Rules
1. Only the first key of a partitioning is compared: rows that match in all keys match in the first.
2. A scan may drop a row only if every reader would: each reading of the scan, in every query, must
   be the side of a join that keeps no row without a partner, on the scan's own partition key. The
   keys to meet are those of all the readers together.
3. What happens between the scan and the join may filter, project and group by the key, which treats
   rows of different keys apart; anything else is no single reading (`Piece.reading`).
4. A scan that cuts (LIMIT) must not be hinted: another row would take the place of a dropped one.
"""

from dataclasses import replace

from caudal.sql.planner.plan import Hint
from caudal.sql.planner.select_block import canonical
from caudal.sql.planner.stage_registry import StageDraft, StageRead, StageRegistry


def hints(registry: StageRegistry) -> tuple[Hint, ...]:
    """The hints of all scans that can have one."""
    made = []
    for draft in registry.drafts.values():
        readings = [reading for reading in registry.readings if reading.stage == draft.name]
        hint = _hint(draft, readings, registry) if readings else None
        if hint is not None:
            made.append(hint)
    return tuple(made)


def _hint(draft: StageDraft, readings: list[StageRead], registry: StageRegistry) -> Hint | None:
    if draft.place != "scan" or draft.kind != "hash" or draft.block.is_cut:
        return None
    key = draft.written_keys[0]
    if draft.block.group is not None and key not in draft.block.group:
        return None
    sources = []
    for reading in readings:
        if reading.matched is None:
            return None
        other = registry.draft(reading.matched)
        if not other.keys or other.keys[0] in other.hidden:
            return None
        sources.append((other.name, other.keys[0]))
    condition = f"{key} IN (SELECT key FROM caudal_hint)"
    hinted = replace(draft.block, where=(*draft.block.where, condition))
    (body,) = canonical([hinted.body()])
    together = tuple(dict.fromkeys(sources))
    return Hint(draft.name, together, readings[0].type, draft.sql_over(body), key)
