"""Everything Caudal raises on purpose.

One root, one branch per kind of cause, because the remedy differs: a user's mistake is not our
bug, and broken data is not a broken application. Each message is one line that says what is
wrong and what to do next; the command line prints exactly that line.
"""


class CaudalError(Exception):
    """The root: catch this to catch everything Caudal raises on purpose."""


class UsageError(CaudalError):
    """The request itself is wrong (an unknown name, a bad option): correct it and ask again."""


class ApplicationError(CaudalError):
    """An application folder is broken: mend the file that the message names."""


class DataError(CaudalError):
    """The input files cannot be used as they are: mend or point to other files."""


class RejectedRowError(DataError):
    """A row was rejected in strict mode: mend the row, or run without `--strict`."""


class QueryError(CaudalError):
    """A query failed while it ran (a cast that must fail, a limit exceeded)."""


class MemoryExceededError(QueryError):
    """A query needs more memory than it may have: allow more, or ask for less at once."""


class InterruptedQueryError(QueryError):
    """A query was ended from outside: nothing is known about it; ask again."""


class MissingPackageError(CaudalError):
    """An optional package is not installed: the message says how to install it."""


class OutputError(CaudalError):
    """The output cannot be written: make room, or choose another place."""


class JobError(CaudalError):
    """A request about a job cannot be served, or the job ended without answers."""


class UnreachableError(JobError):
    """No gateway answered: whether anything happened is unknown; ask again."""


class FormatError(CaudalError):
    """Stored bytes are damaged, or of a format that this Caudal does not know."""


class BrokerError(CaudalError):
    """The broker did not confirm what was asked: it may have happened or not; ask again."""


class StoreError(CaudalError):
    """The store did not do what was asked: it is away, full, or refuses; try again later."""


class AlreadyExistsError(StoreError):
    """The key is taken by another object, which is durable: read that one instead."""


class NotFoundError(StoreError):
    """There is no object under this key."""
