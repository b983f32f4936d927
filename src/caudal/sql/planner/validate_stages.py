"""Validation of a split query by DuckDB, before it runs.

DuckDB binds all stages of the query at once, as common table expressions, over empty tables.

1. The columns of the answer must have the names and types of the author's own text.
2. The columns of every stage, and the keys by which it is hashed, must have the types that were
   inferred for them (`type_inference.py`). Equal keys of another type could be hashed as different
   values, and sums of another type need not merge exactly.
3. A stage that names a stage which is not among its inputs is refused: it would not find it when it
   runs.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from caudal.errors import UsageError
from caudal.sql.planner import types
from caudal.sql.planner.binder import Binder, OutputColumn
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.plan import Finish
from caudal.sql.planner.stage_registry import StageDraft, StageRegistry
from caudal.sql.planner.types import Type
from caudal.sql.quoting import folded

_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
_STAGE_NAME = re.compile(r"\b(?:scan|fold)\d+\b")


def require_valid(
    finish: Finish, registry: StageRegistry, columns: Sequence[OutputColumn], binder: Binder
) -> None:
    """Raise UnsupportedError unless the stages give these columns, and have the inferred types."""
    stages = [_described(draft) for draft in registry.behind(finish.inputs)]
    for stage in stages:
        _require_inputs(stage.sql, stage.inputs)
    _require_inputs(finish.sql, finish.inputs)
    found = _columns_of_all(finish, stages, columns, binder)
    if found[: len(columns)] != list(columns):
        raise UnsupportedError("its stages give columns of other names or types")
    inferred = [kind for stage in stages for kind in stage.inferred]
    _require_types(inferred, [column.type for column in found[len(columns) :]], binder)


@dataclass(frozen=True)
class _DescribedStage:
    """A stage whose SELECT lists its uncast keys too, and the types inferred for the whole list."""

    name: str
    sql: str
    inputs: tuple[str, ...]
    inferred: tuple[Type, ...]


def _described(draft: StageDraft) -> _DescribedStage:
    more = [text for text in draft.inferred if text not in draft.listed]
    items = [f"{text} AS {draft.name}__key{place}" for place, text in enumerate(more)]
    listed = tuple(draft.inferred.get(text) for text in (*draft.listed, *more))
    sql = draft.sql_over(draft.body, items)
    return _DescribedStage(draft.name, sql, draft.inputs, listed or (None,))


def _columns_of_all(
    finish: Finish,
    stages: Sequence[_DescribedStage],
    columns: Sequence[OutputColumn],
    binder: Binder,
) -> list[OutputColumn]:
    """Return the columns of the answer, and after them the columns of every stage."""
    bound = ", ".join(f"{stage.name} AS ({stage.sql})" for stage in stages)
    within = f"WITH {bound} " if stages else ""
    names = ", ".join(stage.name for stage in stages)
    every = f"{within}SELECT * FROM ({finish.sql}) AS answer, {names}" if stages else finish.sql
    try:
        found = binder.columns(every)
        if len({folded(column.name) for column in columns}) < len(columns):
            # A subquery renames columns that have the same name.
            return binder.columns(f"{within}{finish.sql}") + found[len(columns) :]
        return found
    except UsageError as error:
        raise UnsupportedError(f"its stages are not valid ({error})") from error


def _require_types(inferred: Sequence[Type], found: Sequence[str], binder: Binder) -> None:
    pairs = zip(inferred, found, strict=True)
    doubted = {(one, two) for one, two in pairs if one is not None and not types.agrees(one, two)}
    if not doubted:
        return
    # The text of a query may spell a type in another way than DuckDB does.
    spelled = ", ".join(f"CAST(NULL AS {one})" for one, _ in doubted if types.is_certain(one))
    try:
        known = [column.type for column in binder.columns(f"SELECT {spelled}")]
    except UsageError:
        known = []
    if known != [two for _, two in doubted]:
        raise UnsupportedError("a type that the planner inferred is not the type that DuckDB gives")


def _require_inputs(sql: str, inputs: Iterable[str]) -> None:
    named = set(_STAGE_NAME.findall(_QUOTED.sub("", sql)))
    if not named <= set(inputs):
        raise UnsupportedError("a stage reads a stage that is not among its inputs")
