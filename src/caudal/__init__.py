"""Caudal answers SQL over datasets that clients stream in as CSV."""

from typing import TYPE_CHECKING

from caudal import late  # noqa: F401 - it gives the names below when they are asked for
from caudal.version import __version__

if TYPE_CHECKING:
    import caudal.sql  # noqa: F401 - the package first, so that the function may have its name
    from caudal.api import run, sentiment, sql
    from caudal.client.client import Client
    from caudal.errors import CaudalError
    from caudal.results.answers import Answers, Result

__all__ = ["Answers", "CaudalError", "Client", "Result", "__version__", "run", "sentiment", "sql"]
