"""How many rows and bytes each stage of a task's output has, read from the output's index.

Only people look at these numbers. So an output that cannot be read has none, and its task goes on:
who needs the output finds out what is wrong with it.
"""

from caudal.errors import FormatError
from caudal.formats import frame, mapped, outputs
from caudal.formats.keys import Task

Sizes = dict[str, tuple[int, int]]


def stage_sizes(task: Task, data: bytes) -> Sizes:
    """Return rows and bytes by stage; {} for a merge, a failed query or damaged bytes."""
    try:
        return _sizes(task, data)
    except FormatError:
        return {}


def _sizes(task: Task, data: bytes) -> Sizes:
    match task.kind:
        case "map":
            index = mapped.open_bytes(data).index
            return {name: _sum(stage) for name, stage in index.stages.items()}
        case "fold":
            folded, _ = outputs.decode_fold(frame.of_bytes(data), task.name)
            return {task.name: _sum(folded.slices)} if folded.slices else {}
        case "finish":
            head, _ = frame.decode(
                frame.of_bytes(data), outputs.RESULT_MAGIC, outputs.ResultHeader, task.name
            )
            return {} if head.error else {task.name: (head.rows.rows, head.rows.length)}
        case "merge":
            return {}


def _sum(stage: mapped.StageIndex) -> tuple[int, int]:
    return sum(one.rows for one in stage.slices), sum(one.length for one in stage.slices)
