"""All exceptions that Caudal raises on purpose.

There is one root class and one subclass per kind of cause, because the remedy differs: a user's
mistake is not a bug of Caudal, and bad data is not a broken application. Each message is one line
that says what is wrong and what to do next. The command line prints exactly that line.
"""


class CaudalError(Exception):
    """The root class: catch it to catch every error that Caudal raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython and notebooks show: the message, since the stack helps nobody."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(CaudalError):
    """The request is wrong (an unknown name, a bad option): correct it and try again."""


class ApplicationError(CaudalError):
    """An application folder is broken: fix the file that the message names."""


class DataError(CaudalError):
    """The input files cannot be used as they are: fix them or use other files."""


class WorkbookError(DataError):
    """An Excel workbook cannot be read (no such sheet, too large, not a workbook)."""


class UnreadableError(DataError):
    """A file is there but cannot be read now (a disk, a network): try again, perhaps elsewhere."""


class RejectedRowError(DataError):
    """A row was rejected in strict mode: fix the row, or run without `--strict`."""


class QueryError(CaudalError):
    """A query failed while it ran (a cast that must fail, a limit exceeded)."""


class MemoryExceededError(QueryError):
    """A query needs more memory than its limit: raise the limit, or request less data at once."""


class InterruptedQueryError(QueryError):
    """A query was stopped from outside and its outcome is unknown: run it again."""


class MissingPackageError(CaudalError):
    """An optional package is not installed: the message says how to install it."""


class OutputError(CaudalError):
    """The output cannot be written: make room, or choose another place."""


class JobError(CaudalError):
    """A request about a job cannot be served, or the job ended without answers."""


class UnreachableError(JobError):
    """No gateway answered; the request may or may not have taken effect: try again."""


class SparkFailedError(CaudalError):
    """Spark could not be reached or gave up: the message has its reason. Look at its logs."""


class FormatError(CaudalError):
    """Stored bytes are damaged, or in a format that this version does not know."""


class OtherVersionError(FormatError):
    """A job needs another version of Caudal, usually a newer one: leave it to such a process."""


class BrokerError(CaudalError):
    """The broker did not confirm a request, which may or may not have taken effect: try again."""


class BrokerLoginError(BrokerError):
    """The broker refuses the user and password of its URL: correct them."""


class EngineError(CaudalError):
    """The Docker engine did not answer, or refused: the message has its words."""


class StoreError(CaudalError):
    """The store is unreachable, full, or refused the request: try again later."""


class StoreFullError(StoreError):
    """The disk of the store is full, or its quota is used up: free some space, then try again."""


class AlreadyExistsError(StoreError):
    """Another, durable object already has this key: read that object instead."""


class NotFoundError(StoreError):
    """No object has this key."""
