"""All months of a dataset: find the stale and unfinished ones, and bring them up to date.

Two listings (projections, manifests) and one read per month are enough to find them. Only months
that need it are consolidated, a few at a time, so that memory holds only the rows of a few.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from caudal.errors import CaudalError, FormatError, NotFoundError, StoreError
from caudal.series.catalog import Catalog, Placed
from caudal.series.config import SeriesConfig
from caudal.series.consolidation import MonthOutcome, MonthResult, consolidate_month
from caudal.series.decisions import Action, decide
from caudal.series.errors import ConsolidationError
from caudal.series.layout import Month
from caudal.series.manifest import NO_INPUTS, ConsolidationManifest, ManifestStatus, MonthInputs
from caudal.series.parallel import WorkerPool

_MONTHS_AT_A_TIME = 32  # in the survey
_MONTHS_AT_ONCE = 4  # in consolidation
_SWEPT_SECONDS = 60.0  # younger temporary files are not checked


class Freshness(StrEnum):
    """Whether the projections of a month match the event log."""

    FRESH = "fresh"
    STALE = "stale"  # there are newer events
    MISSING = "missing"  # there are events, but no committed projection
    UNFINISHED = "unfinished"  # a run stopped, or is still running
    SUSPECT = "suspect"  # a final file is not the recorded one
    TRUNCATED = "truncated"  # the log has lost events that it was built from
    DAMAGED = "damaged"  # a manifest that readers need cannot be read


@dataclass(frozen=True)
class MonthStatus:
    """One month: its newest manifest, its versions in the log, and its files."""

    month: Month
    freshness: Freshness
    inputs: MonthInputs
    newest: ConsolidationManifest | None
    placed: Placed
    damage: FormatError | None = None

    @property
    def is_tidy(self) -> bool:
        """Whether there is nothing to do and nothing to delete."""
        left = self.placed.temps or (self.newest and self.placed.outcast(self.newest))
        return self.freshness is Freshness.FRESH and not left


def survey(catalog: Catalog, dataset_id: str) -> Iterator[MonthStatus]:
    """Yield every month that has events or projections, in order.

    Reads in the order of consolidation.py: files, manifests, then the head of the log.
    """
    placed = catalog.placed(dataset_id)
    numbers = catalog.newest_manifest_numbers(dataset_id)
    months = sorted({*numbers, *catalog.log(dataset_id).months()})
    for start in range(0, len(months), _MONTHS_AT_A_TIME):
        chosen = months[start : start + _MONTHS_AT_A_TIME]
        newest = catalog.workers.each(lambda month: _newest(catalog, month, numbers), chosen)
        inputs = catalog.log(dataset_id).months()
        for month, manifest in zip(chosen, newest, strict=True):
            yield _status(
                month, manifest, inputs.get(month, NO_INPUTS), placed.get(month, Placed())
            )


@dataclass(frozen=True)
class Consolidated:
    """The results of a run over all months. A month that fails does not stop the others."""

    done: list[MonthOutcome]
    errors: list[CaudalError]

    def outcomes(self) -> list[MonthOutcome]:
        """Return the results if no month failed.

        Otherwise raise the error, or one with the count.
        """
        if len(self.errors) > 1:
            months = len(self.done) + len(self.errors)
            raise ConsolidationError(
                f"{len(self.errors)} of {months} months failed; the first: {self.errors[0]}"
            ) from self.errors[0]
        if self.errors:
            raise self.errors[0]
        return self.done


def consolidate_all(
    catalog: Catalog, config: SeriesConfig, *, force: bool = False
) -> list[MonthOutcome]:
    """Bring all stale, unfinished or damaged months up to date, and delete unneeded files.

    A month that fails does not stop the others. Its error is raised at the end.
    """
    return consolidate_each(catalog, config, force=force).outcomes()


def consolidate_each(
    catalog: Catalog, config: SeriesConfig, *, force: bool = False
) -> Consolidated:
    """Do the same as `consolidate_all`, but also return the results if some months fail."""
    catalog.log(config.dataset_id).require_same(config)
    # Several months at a time: while one waits for its manifest, another writes its files.
    workers = WorkerPool(min(_MONTHS_AT_ONCE, catalog.workers.threads))
    ended = workers.each(
        lambda found: _bring_up(catalog, config, found, force=force),
        survey(catalog, config.dataset_id),
    )
    done = [one for one in ended if isinstance(one, MonthOutcome)]
    errors = [one for one in ended if isinstance(one, CaudalError)]
    try:
        catalog.log(config.dataset_id).sweep()
        catalog.store.sweep(_SWEPT_SECONDS)
    except StoreError as error:
        errors = errors or [error]
    return Consolidated(done, errors)


def _bring_up(
    catalog: Catalog, config: SeriesConfig, found: MonthStatus, *, force: bool
) -> MonthOutcome | CaudalError:
    if found.damage is not None:
        return found.damage
    try:
        if found.is_tidy and found.newest is not None and not force:
            catalog.refresh_manifest_copy(found.newest)
            return MonthOutcome(found.month, MonthResult.FRESH, "fresh", found.newest)
        return consolidate_month(
            catalog,
            config,
            found.month.year,
            found.month.month,
            force=force,
            placed=found.placed,
        )
    except CaudalError as error:
        return error


def _newest(
    catalog: Catalog, month: Month, numbers: dict[Month, int]
) -> ConsolidationManifest | FormatError | None:
    if month not in numbers:
        return None
    try:
        newest = _numbered(catalog, month, numbers[month])
        catalog.read_committed_manifest(month, newest)
    except FormatError as error:
        return error
    return newest


def _numbered(catalog: Catalog, month: Month, number: int) -> ConsolidationManifest | None:
    try:
        return catalog.read_numbered_manifest(month, number)
    except NotFoundError:  # there are newer ones, and a vacuum ran
        return catalog.read_consolidation_manifest(month)


def _status(
    month: Month,
    newest: ConsolidationManifest | FormatError | None,
    inputs: MonthInputs,
    placed: Placed,
) -> MonthStatus:
    if isinstance(newest, FormatError):
        return MonthStatus(month, Freshness.DAMAGED, inputs, None, placed, newest)
    action = decide(newest, inputs, placed.tags).action
    if action in (Action.SKIP, Action.NOTHING):
        freshness = Freshness.FRESH
    elif newest is None:
        freshness = Freshness.MISSING
    elif action is Action.REFUSE:
        freshness = Freshness.TRUNCATED
    elif newest.status is not ManifestStatus.COMPLETED:
        freshness = Freshness.UNFINISHED
    elif action is Action.CHECK:
        freshness = Freshness.SUSPECT
    else:
        freshness = Freshness.STALE
    return MonthStatus(month, freshness, inputs, newest, placed)
