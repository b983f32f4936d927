"""Questions to datasets of a cluster: `submit`, `sql` and `watch` with `--dataset`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import typer
from rich.console import Console

from caudal.cli import going_on
from caudal.cli.changes_show import changes_line, print_changes
from caudal.cli.consoles import message_console
from caudal.cli.formats import Format
from caudal.cli.gateways import GatewayOptions
from caudal.cli.options import QueryOptions
from caudal.cli.output import checked_destination, require_all
from caudal.cli.submit_progress import SubmitProgress
from caudal.client.dataset import require_done
from caudal.client.dataset_questions import QUESTION_OPTIONS, DatasetQuestion, ask, versions
from caudal.client.results import answers_of
from caudal.client.submit import with_sentiment
from caudal.errors import UsageError
from caudal.model import ADHOC, Application, ParameterValue
from caudal.results.answers import Result


def cluster_question(
    app: Application,
    dataset: str,
    asking: QueryOptions,
    as_of: int | None = None,
    *,
    queries: Sequence[str] = (),
    parameters: Mapping[str, ParameterValue] | None = None,
) -> DatasetQuestion:
    """Return the question that the options mean."""
    known = [query.name for query in app.queries]
    for name in queries:
        if name not in known:
            raise UsageError(
                f"{app.name} has no query {name!r}; its queries are: {', '.join(known)}"
            )
    return DatasetQuestion(
        with_sentiment(app, asking.sentiment),
        dataset,
        as_of,
        tuple(queries),
        parameters or {},
        QUESTION_OPTIONS,
    )


def require_no_files(asking: QueryOptions) -> None:
    """Refuse options that contradict --dataset."""
    for option, given in (("--data", asking.data), ("--file", asking.file)):
        if given:
            raise UsageError(f"{option} and --dataset are two sources: leave one of them out")
    if asking.rejects is not None or asking.strict:
        raise UsageError(
            "rows were rejected when they were loaded: ask the table `rejects` instead of "
            "--rejects or --strict"
        )


def answer_question(
    question: DatasetQuestion, asking: QueryOptions, way: GatewayOptions, *, detach: bool = False
) -> None:
    """Ask a dataset, and write the answers as they arrive."""
    require_no_files(asking)
    destination = checked_destination(asking.form, asking.out, len(question.asked))
    untitled = question.asked == (ADHOC,)
    with way.open() as gateways:
        delivery = SubmitProgress(
            gateways, destination, preview=False, untitled=untitled, waits=not detach
        )
        how = partial(_how_to_go_on, delivery, way)
        with going_on.telling(how), delivery.shown():
            answer = ask(question, gateways, delivery, detach=detach)
    if answer.outcome is None:
        typer.echo(answer.job_id)
        told = f"`caudal results {answer.job_id}` gives its answers"
        message_console().print(told, highlight=False)
        return
    require_done(answer)
    delivery.finish(question.asked)
    if not asking.quiet:
        told = f"{question.dataset}: version {answer.version}"
        message_console().print(told, highlight=False, markup=False)
    failed = delivery.failures
    require_all({name: failed[name] for name in question.asked if name in failed})


def _how_to_go_on(delivery: SubmitProgress, way: GatewayOptions) -> str:
    return going_on.of_question(delivery.job_id, way.words())


def watch_question(
    question: DatasetQuestion, asking: QueryOptions, way: GatewayOptions, count: int | None
) -> None:
    """Answer a query again whenever a dataset has a new version; changed rows are marked."""
    (query,) = question.asked
    console = Console(width=None if sys.stdout.isatty() else 160)
    old: Result | None = None
    with way.open() as gateways:
        for seen in islice(versions(gateways, question.dataset), count):
            with way.open() as others:
                answer = ask(replace(question, version=seen.version), others)
            require_done(answer)
            answers = answers_of(answer.results, [query])
            require_all(answers.failures)
            if asking.form is Format.JSON:
                sys.stdout.buffer.write(changes_line(seen.version, old, answers[query]))
                sys.stdout.flush()
            else:
                print_changes((seen.version, seen.time), old, answers[query], console)
            old = answers[query]
