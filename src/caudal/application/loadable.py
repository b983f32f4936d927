"""The shipped applications as a load sends them."""

from functools import cache

from caudal.application.folder import load_application, shipped_applications
from caudal.formats.job import Text


@cache
def loadable_applications() -> tuple[Text, ...]:
    """Return the shipped applications, read once."""
    return tuple(Text.for_load(load_application(one)) for one in shipped_applications().values())
