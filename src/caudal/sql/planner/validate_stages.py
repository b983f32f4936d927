"""Whether DuckDB accepts the stages of a split query, before anybody runs them.

All stages of the query are bound at once, as common tables of its finish, over empty tables. The
columns of the answer must have the names and types of the author's own text. A stage sees only its
inputs when it runs, so naming any other is an error too.
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
    """Raise UnsupportedError unless the stages give the columns that the author asked for."""
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
        raise UnsupportedError("its stages give other columns or types")


def _require_inputs(sql: str, inputs: Iterable[str]) -> None:
    named = set(_STAGE_NAME.findall(_QUOTED.sub("", sql)))
    if not named <= set(inputs):
        raise UnsupportedError("a stage reads another that it is not given")
