"""What to do with a month, from what is known about it. Pure.

    newest manifest   and                                        then
    none              events                                     start
    none              no events                                  nothing
    in_progress                                                  start (over)
    committed                                                    roll forward, then look again
    completed         inputs that lack some of its own           refuse, unless forced
    completed         other inputs                               start
    completed         same inputs, a tag differs                 check the bytes
    completed         same inputs, all tags as recorded          skip

Why an attempt may be started over without asking whether it lives: it commits by creating the
manifest right after its own `in_progress`; whoever takes that number first makes the commit
impossible. So two never both commit, and the loser learns it from its own create.

Why they do not chase each other for ever: who loses a race gives way, unless the winner works from
older inputs than its own; and inputs only grow.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from caudal.series.manifest import ConsolidationManifest, ManifestStatus, MonthInputs


class Action(Enum):
    """What to do next with a month."""

    NOTHING = "nothing"
    SKIP = "skip"
    START = "start"
    ROLL_FORWARD = "roll forward"
    CHECK = "check"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Decision:
    """An action and, for people, why."""

    action: Action
    reason: str


def decide(
    newest: ConsolidationManifest | None,
    inputs: MonthInputs,
    tags: Mapping[str, str],
    *,
    force: bool = False,
) -> Decision:
    """The next action. `inputs` must have been read after `newest`, so that it never knows less.

    `tags` are those that the store's listing shows for the final files, by series.
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
    """Whether the log has lost what a month was built from: building it again would lose it too."""
    return not set(newest.versions) <= set(inputs.versions)


def is_stale(committed: ConsolidationManifest, inputs: MonthInputs) -> bool:
    """Whether the log holds what a month was not built from. It may know less, if read before."""
    same = set(inputs.versions) == set(committed.versions)
    if same:
        return inputs.fingerprint != committed.fingerprint
    return not set(inputs.versions) <= set(committed.versions)


def gives_way(newest: ConsolidationManifest | None, inputs: MonthInputs) -> bool:
    """Whether the loser of a race stops: the winner works from inputs that are as new."""
    return newest is not None and set(inputs.versions) <= set(newest.versions)


def sweepable(
    attempts: Iterable[str],
    newest: ConsolidationManifest | None,
    standing: ConsolidationManifest | None,
) -> frozenset[str]:
    """The attempts whose files in `.tmp/` nobody needs.

    They must have been listed before `newest` was read: then an attempt that is not the newest
    manifest's own can never commit. One that did commit, and is what readers go by, keeps its
    files until they are all in place.
    """
    unfinished = (
        one for one in (newest, standing) if one and one.status is not ManifestStatus.COMPLETED
    )
    return frozenset(attempts) - {one.attempt for one in unfinished}
