"""The dataset of `--from` and `--as-of`, for commands that ask."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from caudal.cli.options import QueryOptions
from caudal.errors import UsageError
from caudal.model import Application, ParameterValue
from caudal.results.answers import Answers
from caudal.run_options import Engine

if TYPE_CHECKING:
    from caudal.datasets.shelf import Shelf


def chosen_dataset(
    source: str | None, as_of: int | None, asking: QueryOptions | None = None
) -> "Shelf":
    """Open the dataset of the options. Refuse options that contradict it."""
    if source is None:
        raise UsageError("--as-of is for a dataset: add --from DATASET")
    if asking is not None:
        _check(asking)
    from caudal.datasets.shelf import open_shelf

    return open_shelf(source, as_of)


def require_cluster(app: str | None, source: str | None) -> None:
    """Refuse --dataset without an application, or with a second dataset."""
    if app is None or source is not None:
        raise UsageError(
            "--dataset asks a cluster: caudal sql APP 'SELECT ...' --gateway URL --dataset NAME"
        )


def ask_dataset(
    app: Application,
    dataset: "Shelf",
    queries: Sequence[str] | None,
    values: Mapping[str, ParameterValue],
    asking: QueryOptions,
) -> Answers:
    """Answer queries over a dataset."""
    from caudal.local.engines import ask_with

    return ask_with(asking.engine, app, dataset, queries, values, asking.run_options(None))


def _check(asking: QueryOptions) -> None:
    for option, given in (("--data", asking.data), ("--file", asking.file)):
        if given:
            raise UsageError(f"{option} and --from are two sources: leave one of them out")
    if asking.rejects is not None or asking.strict:
        raise UsageError(
            "rows were rejected when they were loaded: ask the table `rejects` instead of "
            "--rejects or --strict"
        )
    if asking.engine is Engine.SPLIT:
        raise UsageError("the split engine reads no dataset: leave --engine out")
