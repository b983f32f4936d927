"""The engines by name. All have one signature and give the same rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from caudal.files.sources import Sources
from caudal.model import Application, ParameterValue
from caudal.results.answers import Answers
from caudal.run_options import Engine, Progress, RunOptions

if TYPE_CHECKING:
    from caudal.datasets.shelf import Shelf


def run_with(
    engine: Engine,
    app: Application,
    sources: Sources,
    queries: Sequence[str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    *,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Answer queries of an application with this engine. Import the engine only now."""
    if engine is Engine.SPLIT:
        from caudal.local.split import run
    elif engine is Engine.SPARK:
        from caudal.spark.engine import run
    else:
        from caudal.embedded.engine import run
    return run(app, sources, queries, parameters, options, progress)


def ask_with(
    engine: Engine,
    app: Application,
    shelf: "Shelf",
    queries: Sequence[str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    options: RunOptions | None = None,
) -> Answers:
    """Answer queries over a version of a dataset with the embedded or the Spark engine."""
    if engine is Engine.SPARK:
        from caudal.spark.engine import ask
    else:
        from caudal.embedded.dataset_ask import ask
    return ask(app, shelf, queries, parameters, options)
