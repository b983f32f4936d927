"""Caudal answers SQL over datasets that clients stream in as CSV."""

from caudal.answers import Answers, Result
from caudal.api import run, sentiment, sql
from caudal.errors import CaudalError
from caudal.version import __version__

__all__ = ["Answers", "CaudalError", "Result", "__version__", "run", "sentiment", "sql"]
