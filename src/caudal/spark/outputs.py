"""What the driver knows about outputs: sizes of stages, why some failed, which it has received."""

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
    far: set[str] = field(default_factory=set)  # stages of which the driver lacks some slices

    def note_mapped(self, index: Index, near_bytes: int) -> None:
        """Note the scans of one batch; slices of at most `near_bytes` came to the driver."""
        for stage, why in index.failed.items():
            self.failed.setdefault(stage, why)
        for stage, slices in index.stages.items():
            self._add(stage, slices, near_bytes)

    def note_folded(self, folded: Folded, near_bytes: int) -> None:
        """Note one partition of a fold."""
        if folded.slices is None:
            self.failed.setdefault(folded.fold, folded.error)
        else:
            self._add(folded.fold, folded.slices, near_bytes)

    def size(self, stages: Iterable[str]) -> int:
        return sum(self.sizes.get(stage, 0) for stage in stages)

    def _add(self, stage: str, slices: StageIndex, near_bytes: int) -> None:
        lengths = [span.length for span in (*slices.slices, slices.empty)]
        self.sizes[stage] = self.sizes.get(stage, 0) + sum(lengths[:-1])
        if max(lengths) > near_bytes:
            self.far.add(stage)


def first_failure(stages: Iterable[str], failed: Mapping[str, str]) -> str | None:
    """Return why a task with these inputs fails; None if all of them are there."""
    return next((failed[stage] for stage in stages if stage in failed), None)
