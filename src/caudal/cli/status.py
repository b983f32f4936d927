"""Exit statuses of the command line, one for each kind of remedy."""

from enum import IntEnum

from caudal import errors


class ExitStatus(IntEnum):
    """What `caudal` returns to the shell."""

    OK = 0
    CASES_FAILED = 1  # `caudal test` found a difference
    USAGE = 2  # correct the command
    APPLICATION = 3  # mend the application's folder
    DATA = 4  # mend the files, or point to others
    QUERY = 5  # a query failed while it ran
    REJECTED_ROW = 6  # `--strict` met a row to reject
    MISSING_PACKAGE = 7  # install what the message names
    STORE = 8  # the store is away, full, or holds damaged objects
    BUG = 70  # ours: please report it
    INTERRUPTED = 130  # Ctrl-C


_BY_ERROR: dict[type[errors.CaudalError], ExitStatus] = {
    errors.RejectedRowError: ExitStatus.REJECTED_ROW,
    errors.UsageError: ExitStatus.USAGE,
    errors.ApplicationError: ExitStatus.APPLICATION,
    errors.DataError: ExitStatus.DATA,
    errors.QueryError: ExitStatus.QUERY,
    errors.MissingPackageError: ExitStatus.MISSING_PACKAGE,
    errors.StoreError: ExitStatus.STORE,
    errors.FormatError: ExitStatus.STORE,
}


def status_of(error: errors.CaudalError) -> ExitStatus:
    """The exit status for an error: that of its own class, else of the nearest parent."""
    for kind in type(error).__mro__:
        if kind in _BY_ERROR:
            return _BY_ERROR[kind]
    return ExitStatus.BUG
