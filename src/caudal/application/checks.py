"""Checks of an application's data: each file in `checks/` selects rows that must not exist.

A check passes if it selects no row. Checks are queries in every other way: they have titles and
parameters, read derived tables, run on every engine, and may be named in the `answers` of a case.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from caudal.errors import ApplicationError, CaudalError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, ParameterValue
from caudal.results.answers import Result
from caudal.results.rejects import Rejects
from caudal.run_options import Engine, Progress, RunOptions


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of one check: the rows that must not exist, or why it could not run."""

    name: str
    title: str
    failing: Result | None = None
    error: CaudalError | None = None

    @property
    def passed(self) -> bool:
        return self.error is None and not self.failing


def run_checks(
    app: Application,
    sources: Sources,
    parameters: Mapping[str, ParameterValue],
    options: RunOptions,
    engine: Engine = Engine.EMBEDDED,
    *,
    progress: Progress | None = None,
) -> tuple[list[CheckOutcome], Rejects]:
    """Run every check over the files; return the outcomes and the rejected rows."""
    if not app.checks:
        raise ApplicationError(
            f"{app.folder / 'checks'} has no checks: write a SELECT of rows that must not exist "
            "into checks/NAME.sql"
        )
    checking = replace(app, queries=app.checks)
    answers = run_with(
        engine, checking, sources, None, parameters, options=options, progress=progress
    )
    outcomes = [
        CheckOutcome(
            check.name,
            check.title,
            answers.results.get(check.name),
            answers.failures.get(check.name),
        )
        for check in app.checks
    ]
    return outcomes, answers.rejects
