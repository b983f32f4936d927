"""Caudal answers SQL over datasets that clients stream in as CSV."""

from typing import TYPE_CHECKING

from caudal import late  # noqa: F401 - loads the names below on first use
from caudal.version import __version__

if TYPE_CHECKING:
    import caudal.sql  # noqa: F401 - import the package before the function of the same name
    from caudal.api import run, sentiment, sql
    from caudal.client.client import Client
    from caudal.dataset_api import Dataset, load
    from caudal.errors import CaudalError
    from caudal.results.answers import Answers, Result
    from caudal.run_options import SparkOptions

__all__ = [
    "Answers",
    "CaudalError",
    "Client",
    "Dataset",
    "Result",
    "SparkOptions",
    "__version__",
    "load",
    "run",
    "sentiment",
    "sql",
]
