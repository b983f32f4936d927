"""A dataset of a cluster from Python: ask it, watch it, append to it."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from caudal.client.dataset_questions import (
    QUESTION_OPTIONS,
    DatasetAnswer,
    DatasetQuestion,
    ask,
    versions,
)
from caudal.client.http import HttpGateways
from caudal.client.results import answers_of, error_of_outcome
from caudal.client.submit import with_sentiment
from caudal.model import ADHOC, Application, ParameterValue
from caudal.results.answers import Answers, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from caudal.datasets.reports import LoadReport
    from caudal.formats.dataset_replies import VersionEntry
    from caudal.sql.literals import SqlValue


class RemoteDataset:
    """A dataset of a cluster; made by `caudal.Client.dataset`. Each call asks its newest version,
    or the one of `as_of`."""

    def __init__(
        self, open_gateways: "Callable[[], HttpGateways]", name: str, as_of: int | None = None
    ) -> None:
        self.name = name
        self.as_of = as_of
        self._gateways = open_gateways

    def __repr__(self) -> str:
        return (
            f"RemoteDataset({self.name!r}{'' if self.as_of is None else f', as_of={self.as_of}'})"
        )

    def run(
        self,
        app: str | os.PathLike[str],
        queries: str | Sequence[str] | None = None,
        *,
        parameters: Mapping[str, ParameterValue] | None = None,
        sentiment: str | None = None,
    ) -> Answers:
        """Answer an application's queries; None means all."""
        asked = self._question(_application(app, sentiment), queries, parameters)
        return self._answers(asked)[1]

    def sql(
        self,
        query: str,
        app: str | os.PathLike[str],
        *,
        parameters: "Mapping[str, SqlValue] | None" = None,
        sentiment: str | None = None,
    ) -> Result:
        """Answer any SELECT over the tables of the dataset, `rejects` included."""
        from caudal.sql.adhoc import bind_values, with_adhoc_query

        application = _application(app, sentiment)
        bound = bind_values(query, parameters or {}, application.parameters)
        asked = self._question(with_adhoc_query(application, bound), None, None)
        return self._answers(asked)[1][ADHOC]

    def versions(self, last: int = 1000) -> "tuple[VersionEntry, ...]":
        """Return the newest versions: number, time in milliseconds, kind, rows, files, bytes."""
        with self._gateways() as gateways:
            return gateways.versions(self.name, last).versions

    def append(
        self,
        app: str | os.PathLike[str],
        table: str,
        rows: Any,
        *,
        key: str | None = None,
        strict: bool = False,
    ) -> "LoadReport":
        """Append rows to a table, as one version; the dataset is made if it is new.

        `rows` are those of `caudal.Dataset.append`; workers clean them like rows of a file. With a
        `key`, rows of the same key are loaded once: a program that was killed, or that did not see
        the outcome, repeats the append.
        """
        from caudal.client.load import ClusterLoad, load, rows_of
        from caudal.datasets.offered_rows import offered_rows
        from caudal.formats.job import Options

        application, options = _application(app, None), Options(strict=strict)
        found = offered_rows(application, table, rows, key)
        (columns,) = (one.columns for one in application.tables if one.name == table)
        source = rows_of(found, columns, options.batch_bytes)
        with self._gateways() as gateways:
            return load(ClusterLoad(application, self.name, [source], options), gateways)[0]

    def watch(
        self,
        app: str | os.PathLike[str],
        queries: str | Sequence[str] | None = None,
        *,
        parameters: Mapping[str, ParameterValue] | None = None,
    ) -> Iterator[tuple[int, Answers]]:
        """Yield the newest version and its answers, then again for every later one; never ends."""
        from dataclasses import replace

        asked = self._question(_application(app, None), queries, parameters)
        with self._gateways() as gateways:
            for seen in versions(gateways, self.name):
                yield self._answers(replace(asked, version=seen.version))

    def _question(
        self,
        app: Application,
        queries: str | Sequence[str] | None,
        parameters: Mapping[str, ParameterValue] | None,
    ) -> DatasetQuestion:
        from caudal.sql.literals import checked_value

        names = (queries,) if isinstance(queries, str) else tuple(queries or ())
        values = {
            name: checked_value(name, value, app.parameters.get(name))
            for name, value in (parameters or {}).items()
        }
        return DatasetQuestion(app, self.name, self.as_of, names, values, QUESTION_OPTIONS)

    def _answers(self, question: DatasetQuestion) -> tuple[int, Answers]:
        began = time.perf_counter()
        with self._gateways() as gateways:
            answer = ask(question, gateways)
        require_done(answer)
        seconds = time.perf_counter() - began
        return answer.version, answers_of(answer.results, question.asked, seconds)


def require_done(answer: DatasetAnswer) -> None:
    """Raise the error of a job that is not done."""
    if answer.outcome is not None and answer.outcome.state != "done":
        raise error_of_outcome(answer.job_id, answer.outcome)


def _application(app: str | os.PathLike[str], sentiment: str | None) -> Application:
    from caudal.application import find_application

    return with_sentiment(find_application(os.fspath(app)), sentiment)
