"""Validation of a split query by DuckDB, before it runs.

DuckDB binds all stages of the query at once, as common table expressions of its finish, over empty
tables. The columns of the answer must have the names and types of the author's own text. A stage
that names a stage which is not among its inputs is refused too: it would not find it when it runs.
"""

import re
from collections.abc import Iterable, Sequence

from caudal.errors import UsageError
from caudal.sql.planner.binder import Binder, OutputColumn
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.plan import Finish
from caudal.sql.planner.stage_registry import StageRegistry

_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
_STAGE_NAME = re.compile(r"\b(?:scan|fold)\d+\b")


def require_valid(
    finish: Finish, registry: StageRegistry, columns: Sequence[OutputColumn], binder: Binder
) -> None:
    """Raise UnsupportedError unless the stages give these columns."""
    drafts = registry.behind(finish.inputs)
    parts = [(draft.sql(), draft.inputs) for draft in drafts]
    for sql, inputs in (*parts, (finish.sql, tuple(finish.inputs))):
        _require_inputs(sql, inputs)
    stages = ", ".join(
        f"{draft.name} AS ({sql})" for draft, (sql, _) in zip(drafts, parts, strict=True)
    )
    whole = f"WITH {stages} {finish.sql}" if stages else finish.sql
    try:
        found = binder.columns(whole)
    except UsageError as error:
        raise UnsupportedError(f"its stages are not valid ({error})") from error
    if found != list(columns):
        raise UnsupportedError("its stages give columns of other names or types")


def _require_inputs(sql: str, inputs: Iterable[str]) -> None:
    named = set(_STAGE_NAME.findall(_QUOTED.sub("", sql)))
    if not named <= set(inputs):
        raise UnsupportedError("a stage reads a stage that is not among its inputs")
