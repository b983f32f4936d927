"""Consolidating a month: the order of the steps, and why a crash at any point is safe.

 1. List the files in `.tmp/` of the month, read the newest manifest, then the head of the event
    log. Decide what to do (decisions.py).
 2. Create manifest `in_progress`. It takes a number, so no older attempt can commit any more.
 3. Delete the files of older attempts that step 1 listed. Merge the events, write every
    projection to `.tmp/{attempt}/`, and read each one back.
 4. Create manifest `committed`, with the number after that of step 2. **This is the commit.**
 5. Move every file to its final place.
 6. Create manifest `completed`, with the tags of the files.
 7. Delete `.tmp/{attempt}/`.

State after a crash
- in 1: nothing has changed;
- in 2 or 3: `in_progress`. Readers still use the manifest that was committed before, whose files
  are unchanged. The next run starts over and deletes the old files;
- in 4 or 5: `committed`. Readers take each file from its final place or from `.tmp/`, where all of
  them still are. The next run repeats step 5, which is harmless, and continues;
- in 6 or 7: there are files in `.tmp/` that no reader needs. The next run deletes them;
- between a manifest and its copy `manifest.json`: the copy is old. Every run refreshes it.

Another run
- may take the number of step 2, 4 or 6: see decisions.gives_way. The loser deletes its own files;
- may resume in step 5 after another attempt has completed, and move an old file to the final
  place. Its create of `completed` then fails, so it reads the state again like every run. It finds
  a tag that differs from the recorded one, checks the bytes and rebuilds. If it has died, the next
  run does this. Readers notice the wrong digest and merge from events.
"""

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from caudal.errors import StoreError
from caudal.series.attempt import AGAIN, Attempt, OvertakenError
from caudal.series.catalog import Catalog, Placed
from caudal.series.config import SeriesConfig
from caudal.series.decisions import Action, Decision, decide, gives_way, lacks_events, sweepable
from caudal.series.errors import ConsolidationError, LostFileError, TruncatedLogError
from caudal.series.layout import Month
from caudal.series.manifest import ConsolidationManifest, ManifestStatus, MonthInputs

_MOST_ROUNDS = 100


class MonthResult(StrEnum):
    """The result of a run for a month."""

    NOTHING = "no events"
    FRESH = "fresh"
    CONSOLIDATED = "consolidated"
    ROLLED_FORWARD = "rolled forward"
    REPAIRED = "repaired"
    RECORDED = "checked"  # the bytes were right, only their tags were new
    GAVE_WAY = "gave way"  # another run consolidates it


@dataclass(frozen=True)
class MonthOutcome:
    """The result of a run for a month, and the reason."""

    month: Month
    ending: MonthResult
    reason: str
    manifest: ConsolidationManifest | None
    swept: int = 0  # deleted files of other attempts


@dataclass(frozen=True)
class _MonthFacts:
    """The state of a month, read in the order of step 1."""

    placed: Placed
    newest: ConsolidationManifest | None
    standing: ConsolidationManifest | None
    inputs: MonthInputs


def consolidate_month(
    catalog: Catalog,
    config: SeriesConfig,
    year: int,
    month: int,
    *,
    force: bool = False,
    placed: Placed | None = None,
) -> MonthOutcome:
    """Bring one month up to date with the event log, or leave it to another run that is doing so.

    This is safe at any time, any number of times, from any number of processes. `placed` is a
    listing of the month's projections that was made before; it may be old.
    """
    run = _MonthRun(catalog, config.month(year, month))
    try:
        catalog.log(config.dataset_id).require_same(config)
        return run.run(force=force, placed=placed)
    except (ConsolidationError, TruncatedLogError):
        raise
    except StoreError as error:
        what = f"{config.month(year, month)}: {error}; readers see it complete; {AGAIN}"
        raise ConsolidationError(what) from error


class _MonthRun:
    """One run over one month: read the state, decide and act, until nothing is left to do."""

    def __init__(self, catalog: Catalog, month: Month) -> None:
        self._catalog = catalog
        self._month = month
        self._attempt = Attempt(catalog, month)
        self._overtaken = False
        self._swept = 0

    def run(self, *, force: bool, placed: Placed | None) -> MonthOutcome:
        for _ in range(_MOST_ROUNDS):
            seen = self._look(placed)
            decision = decide(seen.newest, seen.inputs, seen.placed.tags, force=force)
            placed = None
            if self._overtaken and _gives_way(seen):
                return self._outcome(
                    MonthResult.GAVE_WAY, "another run consolidates this month", seen.newest
                )
            try:
                outcome = self._act(decision, seen, force=force)
            except OvertakenError:
                self._overtaken, force = True, False
            except LostFileError:
                continue
            else:
                if outcome is not None:
                    return outcome
        raise ConsolidationError(
            f"{self._month}: too many other runs work on this month: consolidate again later"
        )

    def _look(self, placed: Placed | None) -> _MonthFacts:
        catalog, month = self._catalog, self._month
        placed = catalog.placed_in(month) if placed is None else placed
        newest = catalog.read_consolidation_manifest(month)
        standing = catalog.read_committed_manifest(month, newest) if newest else None
        return _MonthFacts(placed, newest, standing, catalog.log(month.dataset_id).inputs(month))

    def _act(self, decision: Decision, seen: _MonthFacts, *, force: bool) -> MonthOutcome | None:
        """Carry out a decision. Return None if the state must be read again."""
        match decision.action:
            case Action.NOTHING:
                return self._outcome(MonthResult.NOTHING, decision.reason, None)
            case Action.REFUSE:
                raise self._refusal(decision.reason)
            case Action.SKIP:
                return self._skip(decision.reason, seen)
            case Action.ROLL_FORWARD:
                return self._roll_forward(seen, force=force)
            case Action.CHECK:
                return self._check(seen)
            case Action.START:
                return self._start(MonthResult.CONSOLIDATED, decision.reason, seen)

    def _skip(self, reason: str, seen: _MonthFacts) -> MonthOutcome:
        assert seen.newest is not None
        self._catalog.refresh_manifest_copy(seen.newest)
        self._sweep(seen, seen.newest, seen.standing)
        if self._overtaken:
            return self._outcome(MonthResult.GAVE_WAY, "another run consolidated it", seen.newest)
        return self._outcome(MonthResult.FRESH, reason, seen.newest)

    def _roll_forward(self, seen: _MonthFacts, *, force: bool) -> MonthOutcome | None:
        assert seen.newest is not None
        try:
            completed = self._attempt.finish(seen.newest)
        except LostFileError as error:
            if not force and lacks_events(seen.newest, seen.inputs):
                raise self._refusal(f"{error}, and the event log lacks versions of it") from error
            return self._start(MonthResult.REPAIRED, str(error), seen)
        self._sweep(seen, completed, completed)
        if force or completed.fingerprint != seen.inputs.fingerprint:
            return None
        return self._outcome(MonthResult.ROLLED_FORWARD, f"attempt {completed.attempt}", completed)

    def _check(self, seen: _MonthFacts) -> MonthOutcome:
        """Check the bytes of final files whose tags differ from the recorded ones.

        Either the listing was old, or only the tags are new, or a late writer replaced a file. The
        tags are listed again after the manifest was read and before the bytes are read. So a
        recorded tag never belongs to other bytes.
        """
        assert seen.newest is not None
        tags = self._catalog.placed_in(self._month).tags
        if all(tags.get(file.series_code) == file.tag for file in seen.newest.files):
            return self._skip("fresh", seen)
        files = seen.newest.files
        wrong = [
            file.series_code
            for file in files
            if file.series_code not in tags or not self._catalog.is_in_place(self._month, file)
        ]
        if wrong:
            reason = f"final files without the committed bytes: {', '.join(wrong)}"
            return self._start(MonthResult.REPAIRED, reason, seen)
        tagged = tuple(msgspec.structs.replace(file, tag=tags[file.series_code]) for file in files)
        recorded = self._attempt.record(seen.newest, tagged)
        self._sweep(seen, recorded, recorded)
        return self._outcome(MonthResult.RECORDED, "the same bytes under new tags", recorded)

    def _start(self, ending: MonthResult, reason: str, seen: _MonthFacts) -> MonthOutcome:
        self._catalog.log(self._month.dataset_id).settle(max(seen.inputs.versions, default=0))
        begun = self._attempt.begin(seen.inputs, seen.newest, seen.standing)
        self._sweep(seen, begun, seen.standing)
        committed = self._attempt.commit(begun, self._attempt.write(begun))
        completed = self._attempt.finish(committed)
        self._sweep(seen, completed, completed)
        return self._outcome(ending, reason, completed)

    def _refusal(self, reason: str) -> TruncatedLogError:
        return TruncatedLogError(
            f"{self._month}: {reason}: restore the events, "
            "or rebuild from the existing ones with --force"
        )

    def _sweep(
        self,
        seen: _MonthFacts,
        newest: ConsolidationManifest,
        standing: ConsolidationManifest | None,
    ) -> None:
        """Delete listed files that no reader needs, each once.

        These are files of attempts that can no longer commit, and final files of series that the
        month no longer has.
        """
        placed = seen.placed
        gone = sweepable({attempt for attempt, _ in placed.temps}, newest, standing)
        keys = [key for attempt, key in placed.temps if attempt in gone]
        placed.temps = [one for one in placed.temps if one[0] not in gone]
        keys += [placed.finals.pop(code).key for code in placed.outcast(newest)]
        self._swept += self._attempt.sweep(newest.status, keys)

    def _outcome(
        self, ending: MonthResult, reason: str, manifest: ConsolidationManifest | None
    ) -> MonthOutcome:
        return MonthOutcome(self._month, ending, reason, manifest, self._swept)


def _gives_way(seen: _MonthFacts) -> bool:
    """Return whether to leave an unfinished month to the run that overtook this one.

    A completed month is checked once more, because this run may have overwritten one of its files.
    """
    unfinished = seen.newest is not None and seen.newest.status is not ManifestStatus.COMPLETED
    return unfinished and gives_way(seen.newest, seen.inputs)
