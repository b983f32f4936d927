"""Decide what to do with a month, from what is known about it. Pure.

    newest manifest   and                                        then
    none              events                                     start
    none              no events                                  nothing
    in_progress                                                  start (over)
    committed                                                    roll forward, then decide again
    completed         inputs that lack some of its own           refuse, unless forced
    completed         other inputs                               start
    completed         same inputs, a tag differs                 check the bytes
    completed         same inputs, all tags as recorded          skip

An attempt may be started over even if the old one is still running. An attempt commits by creating
the manifest right after its own `in_progress`. The first run that takes this number makes the
commit of the other one impossible. So two attempts never both commit, and the loser learns it from
its own failed create.

Runs do not overtake each other for ever. The loser of a race stops, unless the winner uses older
inputs than its own; and inputs only grow.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from caudal.series.manifest import ConsolidationManifest, ManifestStatus, MonthInputs


class Action(Enum):
    """The next action for a month."""

    NOTHING = "nothing"
    SKIP = "skip"
    START = "start"
    ROLL_FORWARD = "roll forward"
    CHECK = "check"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Decision:
    """An action, and the reason as text for people."""

    action: Action
    reason: str


def decide(
    newest: ConsolidationManifest | None,
    inputs: MonthInputs,
    tags: Mapping[str, str],
    *,
    force: bool = False,
) -> Decision:
    """Return the next action.

    `inputs` must be read after `newest`, so that it never knows less. `tags` are the tags of the
    final files in the store's listing, by series.
    """
    if newest is None:
        if inputs.versions:
            return Decision(Action.START, "never consolidated")
        return Decision(Action.NOTHING, "no events")
    if newest.status is ManifestStatus.COMMITTED:
        return Decision(Action.ROLL_FORWARD, f"attempt {newest.attempt} committed but stopped")
    if not force and lacks_events(newest, inputs):
        return Decision(Action.REFUSE, "the event log lacks versions that the month was built from")
    if newest.status is ManifestStatus.IN_PROGRESS:
        return Decision(Action.START, f"attempt {newest.attempt} did not finish")
    if force:
        return Decision(Action.START, "forced")
    if newest.fingerprint != inputs.fingerprint:
        return Decision(Action.START, "new events")
    if any(tags.get(file.series_code) != file.tag for file in newest.files):
        return Decision(Action.CHECK, "a final file is not the one that was recorded")
    return Decision(Action.SKIP, "fresh")


def lacks_events(newest: ConsolidationManifest, inputs: MonthInputs) -> bool:
    """Return whether the log has lost versions that a month was built from.

    Building such a month again would lose their data.
    """
    return not set(newest.versions) <= set(inputs.versions)


def is_stale(committed: ConsolidationManifest, inputs: MonthInputs) -> bool:
    """Return whether the log holds versions that a month was not built from.

    The log may know fewer versions than the month, if it was read before.
    """
    same = set(inputs.versions) == set(committed.versions)
    if same:
        return inputs.fingerprint != committed.fingerprint
    return not set(inputs.versions) <= set(committed.versions)


def gives_way(newest: ConsolidationManifest | None, inputs: MonthInputs) -> bool:
    """Return whether the loser of a race stops, because the winner has inputs that are as new."""
    return newest is not None and set(inputs.versions) <= set(newest.versions)


def sweepable(
    attempts: Iterable[str],
    newest: ConsolidationManifest | None,
    standing: ConsolidationManifest | None,
) -> frozenset[str]:
    """Return the attempts whose files in `.tmp/` no reader needs.

    They must have been listed before `newest` was read. Then an attempt other than that of the
    newest manifest can never commit. An attempt that did commit, and that readers use, keeps its
    files until all of them are in their final place.
    """
    unfinished = (
        one for one in (newest, standing) if one and one.status is not ManifestStatus.COMPLETED
    )
    return frozenset(attempts) - {one.attempt for one in unfinished}
