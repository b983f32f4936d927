"""What to do with a month, from what is known about it."""

import msgspec
import pytest

from caudal.series.decisions import Action, decide, gives_way, sweepable
from caudal.series.manifest import (
    NO_INPUTS,
    ConsolidationManifest,
    ManifestStatus,
    MonthInputs,
    ProjectionFile,
)

INPUTS = NO_INPUTS.with_part(1, "one")
NEWER = INPUTS.with_part(4, "four")


def manifest(
    status: ManifestStatus, attempt: str = "a", inputs: MonthInputs = INPUTS
) -> ConsolidationManifest:
    return ConsolidationManifest(
        dataset_id="d",
        year=2024,
        month=1,
        status=status,
        timestamp="",
        number=3,
        attempt=attempt,
        run="r",
        fingerprint=inputs.fingerprint,
        versions=inputs.versions,
        files=(ProjectionFile("S", 1, 1, "x", "tag"),),
    )


COMPLETED = manifest(ManifestStatus.COMPLETED)


@pytest.mark.parametrize(
    ("newest", "inputs", "tags", "action"),
    [
        (None, NO_INPUTS, {}, Action.NOTHING),
        (None, INPUTS, {}, Action.START),
        (manifest(ManifestStatus.IN_PROGRESS), INPUTS, {}, Action.START),
        (manifest(ManifestStatus.COMMITTED), INPUTS, {}, Action.ROLL_FORWARD),
        (manifest(ManifestStatus.COMMITTED), NEWER, {}, Action.ROLL_FORWARD),
        (COMPLETED, INPUTS, {"S": "tag"}, Action.SKIP),
        (COMPLETED, NEWER, {"S": "tag"}, Action.START),
        (COMPLETED, INPUTS, {"S": "other"}, Action.CHECK),
        (COMPLETED, INPUTS, {}, Action.CHECK),
        (manifest(ManifestStatus.COMPLETED, inputs=NEWER), INPUTS, {"S": "tag"}, Action.REFUSE),
        (manifest(ManifestStatus.IN_PROGRESS, inputs=NEWER), INPUTS, {"S": "tag"}, Action.REFUSE),
    ],
)
def test_the_table(
    newest: ConsolidationManifest | None,
    inputs: MonthInputs,
    tags: dict[str, str],
    action: Action,
) -> None:
    assert decide(newest, inputs, tags).action is action


def test_force_starts_what_is_fresh_and_what_would_be_refused() -> None:
    assert decide(COMPLETED, INPUTS, {"S": "tag"}, force=True).action is Action.START
    newer = manifest(ManifestStatus.COMPLETED, inputs=NEWER)
    assert decide(newer, INPUTS, {"S": "tag"}, force=True).action is Action.START


def test_the_same_versions_of_another_log_are_other_inputs() -> None:
    """A log that was deleted and written again has version 1 too, with other contents."""
    again = NO_INPUTS.with_part(1, "other contents")
    assert decide(COMPLETED, again, {"S": "tag"}).action is Action.START


def test_a_loser_gives_way_unless_the_winner_knows_less() -> None:
    assert gives_way(manifest(ManifestStatus.IN_PROGRESS), INPUTS)
    assert gives_way(manifest(ManifestStatus.IN_PROGRESS, inputs=NEWER), INPUTS)
    assert not gives_way(manifest(ManifestStatus.IN_PROGRESS), NEWER)


def test_sweeping_spares_who_may_commit_and_what_readers_need() -> None:
    attempts = ["old", "standing", "newest"]
    newest = manifest(ManifestStatus.IN_PROGRESS, "newest")
    committed = manifest(ManifestStatus.COMMITTED, "standing")
    completed = msgspec.structs.replace(committed, status=ManifestStatus.COMPLETED)
    assert sweepable(attempts, newest, committed) == {"old"}
    assert sweepable(attempts, newest, completed) == {"old", "standing"}
    assert sweepable(attempts, committed, committed) == {"old", "newest"}
    assert sweepable(attempts, completed, completed) == set(attempts)
