"""The Python API: the same answers as the command line, as Arrow, Polars or pandas.

`import caudal` is fast: the first call that needs an engine loads it.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from caudal.errors import UsageError
from caudal.model import ParameterValue
from caudal.results.answers import Answers, Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from caudal.files.sources import Sources
    from caudal.model import Application
    from caudal.run_options import Engine, Progress
    from caudal.sql.literals import SqlValue


def run(
    app: str | os.PathLike[str],
    data: str | os.PathLike[str] = ".",
    queries: str | Sequence[str] | None = None,
    *,
    parameters: Mapping[str, ParameterValue] | None = None,
    files: Mapping[str, str | Sequence[str]] | None = None,
    sentiment: str | None = None,
    memory_limit: str | int | None = None,
    strict: bool = False,
    engine: str = "embedded",
    spark: Any = None,
    progress: "Progress | Literal[False] | None" = None,
) -> Answers:
    """Answer an application's queries over the files in a folder.

    >>> import caudal
    >>> films = caudal.run("movies", data=example_data, queries=["q1", "q2"])
    >>> films["q2"].to_arrow().column_names
    ['country', 'budget']
    >>> films.rejects.total
    0

    `app` is a shipped application (`movies`, `books`) or the path of a folder. `queries` is one
    name or several; None means all. `parameters` replace defaults of the application; a value has
    the type of its default. `files` replaces the files of single tables. `strict` fails on the
    first rejected row. `engine="split"` runs the same stages as a cluster and gives the same rows;
    `engine="spark"` runs them on Spark; `spark` is a session, or `caudal.SparkOptions`, or None.
    `progress` receives progress; None shows it in notebooks, False never. Convert results with
    `to_arrow()`, `to_polars()` and `to_pandas()`. `answers.rejects` lists the rejected rows and the
    reasons.
    """
    from caudal.application import find_application
    from caudal.local.engines import run_with
    from caudal.run_options import RunOptions, SparkOptions

    chosen = _engine(engine, spark)
    options = RunOptions(
        sentiment=sentiment,
        memory_limit=_bytes(memory_limit),
        strict=strict,
        spark=SparkOptions.of(spark),
    )
    with _shown(progress) as shown:
        return run_with(
            chosen,
            find_application(os.fspath(app)),
            _sources(data, files),
            [queries] if isinstance(queries, str) else queries,
            parameters,
            options=options,
            progress=shown,
        )


def sql(
    query: str,
    app: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] = ".",
    *,
    parameters: "Mapping[str, SqlValue] | None" = None,
    tables: Mapping[str, Any] | None = None,
    files: Mapping[str, str | Sequence[str]] | None = None,
    sentiment: str | None = None,
    memory_limit: str | int | None = None,
    strict: bool = False,
    engine: str = "embedded",
    spark: Any = None,
    progress: "Progress | Literal[False] | None" = None,
) -> Result:
    """Answer any SELECT over an application's cleaned tables, or over files named in it.

    >>> import caudal
    >>> caudal.sql("SELECT sentiment('a wonderful book') > 0 AS happy").rows()
    [{'happy': True}]
    >>> caudal.sql("SELECT count(*) AS films FROM movies", "movies", example_data).rows()
    [{'films': 3}]
    >>> found = caudal.sql("SELECT title FROM 'movies_metadata.csv'", data=example_data)
    >>> len(found), found.rejects
    (3, no rows were rejected)

    `$name` in the SELECT is a parameter. Its value becomes a typed literal, whatever it holds: a
    text, a number, a bool, a date, a datetime, a Decimal, a list of those, or None. `tables` are
    data frames by name: of pandas, Polars or Arrow, or other results.

    >>> caudal.sql("SELECT $price * n AS cost FROM amounts", parameters={"price": 3},
    ...            tables={"amounts": caudal.sql("SELECT 2 AS n")}).rows()
    [{'cost': 6}]

    Caudal reads CSV files by the same rules as an application's files: it infers column types and
    rejects rows that do not fit them. `result.rejects` lists those rows. DuckDB reads Parquet and
    JSON files.
    """
    from caudal.application import find_application
    from caudal.application.adhoc import files_application
    from caudal.local.engines import run_with
    from caudal.model import ADHOC
    from caudal.run_options import RunOptions, SparkOptions
    from caudal.sql.adhoc import asker_mistakes, bind_values, with_adhoc_query

    chosen = _engine(engine, spark)
    options = RunOptions(
        sentiment=sentiment,
        memory_limit=_bytes(memory_limit),
        strict=strict,
        spark=SparkOptions.of(spark),
    )
    if app is not None:
        application = find_application(os.fspath(app))
        bound = bind_values(query, parameters or {}, application.parameters)
        application = with_adhoc_query(application, bound)
    elif files:
        raise UsageError("`files` is for an application's tables: name the file in the SELECT")
    else:
        folder = Path(data)
        bound = bind_values(query, parameters or {})
        application = files_application(
            bound, folder if folder != Path() else None, chosen, frames=tuple(tables or ())
        )
    sources = replace(_sources(data, files), frames=_frames(tables, application, chosen))
    with asker_mistakes(application), _shown(progress) as shown:
        answers = run_with(chosen, application, sources, options=options, progress=shown)
    return replace(answers[ADHOC], rejects=answers.rejects)


def sentiment(texts: Any, *, model: str = "lexicon") -> "NDArray[np.float64]":
    """Return the polarity of each text in [-1, 1]; 0.0 for null and empty texts.

    `texts` is a list, an Arrow array or column, a Polars or pandas series, or one text (the result
    is then an array of one score).

    >>> import caudal
    >>> caudal.sentiment(["a wonderful book", "a terrible book", None]).round(2).tolist()
    [1.0, -1.0, 0.0]
    >>> caudal.sentiment("a wonderful book").tolist()
    [1.0]
    """
    from caudal.kernels.sentiment import load_model

    return load_model(model).score(_texts(texts))


def _texts(given: Any) -> "pa.Array | pa.ChunkedArray":
    """Convert any column of texts to an Arrow array; raise UsageError for other types."""
    import pyarrow as pa

    if isinstance(given, str) or given is None:
        given = [given]
    if hasattr(given, "to_arrow"):
        given = given.to_arrow()
    try:
        if not isinstance(given, pa.Array | pa.ChunkedArray):
            given = pa.array(given, pa.string(), from_pandas=True)
        kind = given.type.value_type if pa.types.is_dictionary(given.type) else given.type
        texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        if not any(is_text(kind) for is_text in (*texts, pa.types.is_null)):
            raise TypeError(f"a column of {kind}")
        return given if any(is_text(given.type) for is_text in texts) else given.cast(pa.string())
    except (TypeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"sentiment takes texts: a str, a list of them, a column ({reason})"
        ) from None


def _frames(
    tables: Mapping[str, Any] | None, app: "Application", engine: "Engine"
) -> "dict[str, pa.Table]":
    if not tables:
        return {}
    from caudal.files.frames import arrow_tables

    if engine != "embedded":
        raise UsageError(f'data frames are not read by engine="{engine}": leave `engine` out')
    taken = [*(table.name for table in app.tables), *(table.name for table in app.derived)]
    return arrow_tables(tables, taken)


@contextlib.contextmanager
def _shown(progress: "Progress | Literal[False] | None") -> "Iterator[Progress | None]":
    """Provide the receiver of progress: the given one, or one that shows itself in notebooks."""
    if progress is not None:
        yield progress or None
        return
    from caudal.results.notebook import notebook_progress

    with notebook_progress() as shown:
        yield shown


def _engine(name: str, spark: Any = None) -> "Engine":
    from caudal.run_options import Engine

    if name not in set(Engine):
        raise UsageError(f"no engine {name!r}: choose one of {', '.join(Engine)}")
    if spark is not None and name != Engine.SPARK:
        raise UsageError('`spark` is for the Spark engine: add engine="spark"')
    return Engine(name)


def _bytes(limit: str | int | None) -> int | None:
    from caudal.sizes import parse_bytes

    return parse_bytes(limit) if isinstance(limit, str) else limit


def _sources(
    data: str | os.PathLike[str], files: Mapping[str, str | Sequence[str]] | None
) -> "Sources":
    from caudal.files.sources import Sources

    overrides = {
        table: [given] if isinstance(given, str) else list(given)
        for table, given in (files or {}).items()
    }
    return Sources(Path(data), overrides)
