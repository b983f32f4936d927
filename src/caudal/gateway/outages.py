"""Lines of the log about a store or broker that keeps a gateway from answering."""

import logging

from caudal.process.logs import fields

PAUSE_SECONDS = 10.0

_log = logging.getLogger(__name__)


class OutageLog:
    """Log the first failure, and then at most one every ten seconds with their number."""

    def __init__(self) -> None:
        self._logged = float("-inf")
        self._count = 0

    def note(self, error: Exception, now: float) -> None:
        """Note that a request could not be answered because of the store or the broker."""
        self._count += 1
        if now - self._logged < PAUSE_SECONDS:
            return
        about = fields(reason=str(error), requests=self._count)
        _log.warning("the store or the broker refuses requests", extra=about)
        self._logged, self._count = now, 0
