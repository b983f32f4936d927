"""`caudal submit`: answer an application's queries on a cluster, over files of this machine."""

import shlex
from functools import partial
from typing import Annotated

import typer

from caudal.application import find_application
from caudal.cli import going_on
from caudal.cli.cluster_questions import answer_question, cluster_question
from caudal.cli.consoles import message_console
from caudal.cli.gateways import (
    CaOption,
    GatewayOption,
    GatewayOptions,
    PatienceOption,
    TokenFileOption,
)
from caudal.cli.options import (
    ON_SPARK,
    AppArgument,
    AsOfOption,
    DatasetOption,
    ParamOption,
    QueryOptions,
    parameter_values,
    with_asking,
)
from caudal.cli.output import checked_destination, reject_file, report, require_all
from caudal.cli.submit_progress import SubmitProgress
from caudal.client.batches import Compress
from caudal.client.results import error_of_outcome, every_reject, rejects_of
from caudal.client.submit import Submission, with_sentiment
from caudal.client.submit import submit as submit_files
from caudal.errors import UsageError
from caudal.formats.job import SENT_BATCH_BYTES, Options
from caudal.formats.keys import REJECTS
from caudal.model import ADHOC, Application

TimeoutOption = Annotated[
    float,
    typer.Option(
        "--job-timeout",
        metavar="SECONDS",
        min=1.0,
        help="The job expires when its client is silent for this long.",
    ),
]
_ELSEWHERE = ("engine", "memory_limit", "profile", *ON_SPARK)  # options that only local engines use


@partial(with_asking, without=_ELSEWHERE)
def submit(
    app: AppArgument,
    asking: QueryOptions,
    query: Annotated[
        list[str] | None, typer.Option("--query", "-q", help="Only this query (repeatable).")
    ] = None,
    param: ParamOption = None,
    gateway: GatewayOption = None,
    token_file: TokenFileOption = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="JOB", help="Resume a job.")
    ] = None,
    job_timeout: TimeoutOption = 600.0,
    detach: Annotated[
        bool, typer.Option("--detach", help="Send everything, and do not wait for answers.")
    ] = False,
    compress: Annotated[
        Compress,
        typer.Option("--compress", help="auto: only if the gateways are on another machine."),
    ] = Compress.AUTO,
    preview: Annotated[
        bool | None,
        typer.Option(
            "--preview/--no-preview",
            help="Show rows of filter queries while files are being sent.",
            show_default="on a terminal",
        ),
    ] = None,
    patience: PatienceOption = 60.0,
    ca: CaOption = None,
    dataset: DatasetOption = None,
    as_of: AsOfOption = None,
) -> None:
    """Answer an application's queries on a cluster, over files of this machine or a dataset.

    Examples:

    - `caudal submit books --data ~/amazon-books --gateway http://one:8421,http://two:8421`
    - `caudal submit movies -d data -g one:8421 -q q1 -q q4 --out answers --format parquet`
    - `zcat reviews.csv.gz | caudal submit books -d data -g one:8421 --file reviews=-`
    - `caudal submit books -d data -g one:8421 --resume 8b1f0c…`
    - `caudal submit books -g one:8421 --dataset shelf`
    """
    way = GatewayOptions(gateway, token_file, patience, ca)
    if dataset is not None or as_of is not None:
        if dataset is None or resume is not None:
            raise UsageError("--as-of is for a dataset, and a question is not resumed but repeated")
        application = find_application(app)
        values = parameter_values(application.parameters, param)
        question = cluster_question(
            application, dataset, asking, as_of, queries=query or (), parameters=values
        )
        answer_question(question, asking, way, detach=detach)
        return
    application = with_sentiment(find_application(app), asking.sentiment)
    submission = Submission(
        app=application,
        sources=asking.sources(application),
        queries=tuple(query or ()),
        parameters=parameter_values(application.parameters, param),
        options=_options(asking, job_timeout),
        compress=compress,
        resume=resume,
    )
    words = ["caudal", "submit", app, *(f"--query={one}" for one in query or ())]
    words += [f"--param={one}" for one in param or ()]
    _answer(submission, asking, way, words, preview=preview, detach=detach)


def sql_on_cluster(
    app: Application,
    asking: QueryOptions,
    way: GatewayOptions,
    dataset: str | None = None,
    as_of: int | None = None,
) -> None:
    """Run `caudal sql APP SELECT --gateway URL`, over files or over a dataset."""
    if dataset is not None:
        answer_question(cluster_question(app, dataset, asking, as_of), asking, way)
        return
    application = with_sentiment(app, asking.sentiment)
    submission = Submission(application, asking.sources(application), options=_options(asking))
    _answer(submission, asking, way, [], preview=False)


def _options(asking: QueryOptions, silent_seconds: float = 600.0) -> Options:
    given = asking.run_options(None)
    return Options(
        batch_bytes=asking.batch_bytes(SENT_BATCH_BYTES),
        partitions=given.partitions,
        silent_seconds=silent_seconds,
        strict=asking.strict,
        every_reject=asking.rejects is not None,
    )


def _answer(
    submission: Submission,
    asking: QueryOptions,
    way: GatewayOptions,
    words: list[str],
    *,
    preview: bool | None,
    detach: bool = False,
) -> None:
    """Send the files, write answers as they arrive, then print rejects and times."""
    destination = checked_destination(asking.form, asking.out, len(submission.asked))
    console = message_console()
    untitled = submission.asked == (ADHOC,)
    shows = console.is_terminal if preview is None else preview
    with way.open() as gateways:
        delivery = SubmitProgress(
            gateways, destination, preview=shows, untitled=untitled, waits=not detach
        )
        again = partial(_how_to_go_on, delivery, asking, way, words)
        with going_on.telling(again), delivery.shown():
            outcome, results = submit_files(submission, gateways, delivery, detach=detach)
    if outcome is None:
        typer.echo(delivery.job_id)
        console.print(f"`caudal results {delivery.job_id}` gives its answers", highlight=False)
        return
    if outcome.state != "done":
        raise error_of_outcome(delivery.job_id, outcome)
    delivery.finish(submission.asked)
    _report(submission.app, asking, results[REJECTS])
    require_all({name: delivery.failures[name] for name in submission.asked
                 if name in delivery.failures})  # fmt: skip


def _report(
    app: Application,
    asking: QueryOptions,
    rejects: bytes,
) -> None:
    with reject_file(asking.rejects) as sink:
        if sink is not None:
            for row in every_reject(rejects, [table.name for table in app.tables]):
                sink(row)
    report(app.name, rejects_of(rejects), quiet=asking.quiet)


def _how_to_go_on(
    delivery: SubmitProgress, asking: QueryOptions, way: GatewayOptions, words: list[str]
) -> str:
    """Return a text with the commands that resume or cancel the job."""
    if not delivery.job_id:
        return "nothing was sent: run the command again"
    cancel = shlex.join(["caudal", "cancel", delivery.job_id, *way.words()])
    if not words:
        return f"cancel it with: {cancel}"
    resume = shlex.join([*words, *_given(asking), *way.words(), "--resume", delivery.job_id])
    return f"go on with: {resume}; or cancel it with: {cancel}"


def _given(asking: QueryOptions) -> list[str]:
    """Return the options that the resuming command needs too."""
    words = ["--data", str(asking.data)] if asking.data else []
    words += [f"--file={one}" for one in asking.file or ()]
    pairs: list[tuple[str, object]] = [
        ("--format", asking.form.value if asking.form else None),
        ("--out", asking.out),
        ("--rejects", asking.rejects),
        ("--sentiment", asking.sentiment),
    ]
    return words + [word for name, value in pairs if value for word in (name, str(value))]
