"""Caudal answers SQL over datasets that clients stream in as CSV."""

import caudal.sql  # noqa: F401 - the package first, so that the function may have its name
from caudal.api import run, sentiment, sql
from caudal.client.client import Client
from caudal.errors import CaudalError
from caudal.results.answers import Answers, Result
from caudal.version import __version__

__all__ = ["Answers", "CaudalError", "Client", "Result", "__version__", "run", "sentiment", "sql"]
