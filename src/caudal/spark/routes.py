"""Who reads what: the tasks of a job that come after its maps, and the readers of each slice.

Rules
1. A task has an address: its place in `tasks`. The driver and every executor compute the same
   addresses, because they depend on the plan only.
2. Folds come first, level by level: a fold reads tables and folds of earlier levels. Finishes come
   last. The addresses of a level are consecutive.
3. A fold with all partitions reads slice p in partition p, and gathered rows in every partition.
   Any other task reads all slices.
"""

from dataclasses import dataclass
from functools import cached_property

from caudal.formats.keys import Task
from caudal.jobs.plan import JobPlan
from caudal.sql.planner import Fold


@dataclass(frozen=True)
class Routes:
    """The tasks of a plan by address."""

    split: JobPlan
    partitions: int

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        folds = [task for level in self._fold_levels for fold in level for task in self._of(fold)]
        return (*folds, *(Task("finish", one.query) for one in self.split.plan.finishes))

    @cached_property
    def levels(self) -> tuple[range, ...]:
        """The addresses of each level of folds."""
        found, first = [], 0
        for level in self._fold_levels:
            last = first + sum(len(self._of(fold)) for fold in level)
            found.append(range(first, last))
            first = last
        return tuple(found)

    @property
    def finishes(self) -> range:
        """The addresses of the finishes."""
        return range(self.levels[-1].stop if self.levels else 0, len(self.tasks))

    def inputs(self, task: Task) -> tuple[str, ...]:
        """Return the stages that a task reads, in the order of its plan."""
        if task.kind == "finish":
            return tuple(dict.fromkeys(self.split.plan.finish(task.name).inputs.values()))
        return self._fold(task.name).inputs

    def readers(self, stage: str, number: int, slices: int) -> list[int]:
        """Return the addresses of the tasks that read slice `number` of `slices` of a stage."""
        return [
            address
            for address in self._reading.get(stage, ())
            if slices == 1 or self._reads_slice(self.tasks[address], number)
        ]

    def _reads_slice(self, task: Task, number: int) -> bool:
        if task.kind == "finish" or self._fold(task.name).partitions == "one":
            return True
        return task.number == number

    @cached_property
    def _reading(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for address, task in enumerate(self.tasks):
            for stage in dict.fromkeys(self.inputs(task)):
                found.setdefault(stage, []).append(address)
        return found

    @cached_property
    def _fold_levels(self) -> list[list[Fold]]:
        depths: dict[str, int] = {}
        for fold in self.split.plan.folds:  # each after its inputs
            depths[fold.name] = 1 + max((depths.get(one, 0) for one in fold.inputs), default=0)
        deepest = max(depths.values(), default=0)
        return [
            [fold for fold in self.split.plan.folds if depths[fold.name] == depth]
            for depth in range(1, deepest + 1)
        ]

    def _of(self, fold: Fold) -> list[Task]:
        count = self.partitions if fold.partitions == "all" else 1
        return [Task("fold", fold.name, number) for number in range(count)]

    def _fold(self, name: str) -> Fold:
        return next(one for one in self.split.plan.folds if one.name == name)
