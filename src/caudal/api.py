"""Caudal from Python: the same answers as the command line, as Arrow, Polars or pandas."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.answers import Answers, Result
from caudal.application import find_application
from caudal.engine.adhoc import ADHOC, run_adhoc, with_adhoc_query
from caudal.engine.choosing import run_with
from caudal.engine.database import parse_bytes
from caudal.engine.running import Engine, RunOptions, Sources
from caudal.errors import UsageError
from caudal.kernels.sentiment import load_model
from caudal.model import ParameterValue


def run(
    app: str | os.PathLike[str],
    data: str | os.PathLike[str] = ".",
    queries: Sequence[str] | None = None,
    *,
    parameters: Mapping[str, ParameterValue] | None = None,
    files: Mapping[str, str | Sequence[str]] | None = None,
    sentiment: str | None = None,
    memory_limit: str | int | None = None,
    strict: bool = False,
    engine: str = "embedded",
) -> Answers:
    """Answer queries of an application over the files of a folder.

    >>> import caudal
    >>> films = caudal.run("movies", data=example_data, queries=["q1", "q2"])
    >>> films["q2"].to_arrow().column_names
    ['country', 'budget']
    >>> films.rejects.total
    0

    `engine="split"` answers by the stages that a cluster runs; the rows are the same.
    `app` is a shipped application (`movies`, `books`) or the path of a folder. `files` replaces
    the files of single tables. The answers convert with `to_arrow()`, `to_polars()` and
    `to_pandas()`; `answers.rejects` says which rows were left out and why.
    """
    options = RunOptions(sentiment=sentiment, memory_limit=_bytes(memory_limit), strict=strict)
    return run_with(
        _engine(engine),
        find_application(os.fspath(app)),
        _sources(data, files),
        queries,
        parameters,
        options=options,
    )


def sql(
    query: str,
    app: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] = ".",
    *,
    files: Mapping[str, str | Sequence[str]] | None = None,
    sentiment: str | None = None,
) -> Result:
    """Answer any SELECT: over an application's cleaned tables, or over files by their names.

    >>> import caudal
    >>> caudal.sql("SELECT sentiment('a wonderful book') > 0 AS happy").rows()
    [{'happy': True}]
    >>> caudal.sql("SELECT count(*) AS films FROM movies", "movies", example_data).rows()
    [{'films': 3}]
    """
    options = RunOptions(sentiment=sentiment)
    if app is None:
        return run_adhoc(query, options)
    application = with_adhoc_query(find_application(os.fspath(app)), query)
    answers = run_with(Engine.EMBEDDED, application, _sources(data, files), options=options)
    return answers[ADHOC]


def sentiment(texts: Any, *, model: str = "lexicon") -> NDArray[np.float64]:
    """The polarity of each text in [-1, 1]; null and empty texts give 0.0.

    Takes a list of texts, an Arrow array or column, or a Polars or pandas series.

    >>> import caudal
    >>> caudal.sentiment(["a wonderful book", "a terrible book", None]).round(2).tolist()
    [1.0, -1.0, 0.0]
    """
    if hasattr(texts, "to_arrow"):
        texts = texts.to_arrow()
    elif not isinstance(texts, pa.Array | pa.ChunkedArray):
        texts = pa.array(texts, pa.string())
    return load_model(model).score(texts)


def _engine(name: str) -> Engine:
    if name not in set(Engine):
        raise UsageError(f"no engine {name!r}: choose one of {', '.join(Engine)}")
    return Engine(name)


def _bytes(limit: str | int | None) -> int | None:
    return parse_bytes(limit) if isinstance(limit, str) else limit


def _sources(
    data: str | os.PathLike[str], files: Mapping[str, str | Sequence[str]] | None
) -> Sources:
    overrides = {
        table: [given] if isinstance(given, str) else list(given)
        for table, given in (files or {}).items()
    }
    return Sources(Path(data), overrides)
