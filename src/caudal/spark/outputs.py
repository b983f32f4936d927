"""What the driver knows about outputs: the sizes of stages and why some of them failed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from caudal.formats.mapped import Index, StageIndex
from caudal.formats.outputs import Folded


@dataclass
class StageOutputs:
    """Facts about complete and failed stages. Of several reasons the first one counts, by batch or
    partition (ADR 27): outputs are noted in that order."""

    sizes: dict[str, int] = field(default_factory=dict)  # bytes of all slices
    failed: dict[str, str] = field(default_factory=dict)

    def note_mapped(self, index: Index) -> None:
        """Note the scans of one batch."""
        for stage, why in index.failed.items():
            self.failed.setdefault(stage, why)
        for stage, slices in index.stages.items():
            self._add(stage, slices)

    def note_folded(self, folded: Folded) -> None:
        """Note one partition of a fold."""
        if folded.slices is None:
            self.failed.setdefault(folded.fold, folded.error)
        else:
            self._add(folded.fold, folded.slices)

    def size(self, stages: Iterable[str]) -> int:
        return sum(self.sizes.get(stage, 0) for stage in stages)

    def _add(self, stage: str, slices: StageIndex) -> None:
        size = sum(span.length for span in slices.slices)
        self.sizes[stage] = self.sizes.get(stage, 0) + size


def first_failure(stages: Iterable[str], failed: Mapping[str, str]) -> str | None:
    """Return why a task with these inputs fails; None if all of them are there."""
    return next((failed[stage] for stage in stages if stage in failed), None)
