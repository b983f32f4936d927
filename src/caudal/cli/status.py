"""Exit statuses of the command line, one per kind of remedy."""

from enum import IntEnum
from typing import Self

from caudal import errors


class ExitStatus(IntEnum):
    """An exit status of `caudal`; `caudal --help` shows its `meaning`."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        status = int.__new__(cls, value)
        status._value_ = value
        status.meaning = meaning
        return status

    OK = 0, "success"
    CASES_FAILED = 1, "`caudal test` found a difference, or a check found rows"
    USAGE = 2, "correct the command or the SQL given with it"
    APPLICATION = 3, "fix the application's folder"
    DATA = 4, "fix the files, or use other files"
    QUERY = 5, "a query failed while it ran"
    REJECTED_ROW = 6, "`--strict` found a row to reject"
    MISSING_PACKAGE = 7, "install the package that the message names"
    STORE = 8, "the store is unreachable, full, or holds damaged objects"
    OUTPUT = 9, "the output cannot be written: make room, or choose another place"
    JOB = 10, "a job on a cluster failed, was cancelled, or does not exist"
    UNREACHABLE = 11, "no gateway answered: the message says how to continue"
    BROKER = 12, "RabbitMQ is unreachable, or refused the request"
    ENGINE = 13, "the Docker engine is unreachable, or refused the request"
    SPARK = 14, "Spark is unreachable, or gave up: look at its logs"
    BUG = 70, "a bug in Caudal: please report it"
    HUNG_UP = 129, "the terminal was closed"
    INTERRUPTED = 130, "Ctrl-C"
    TERMINATED = 143, "SIGTERM"


_BY_ERROR: dict[type[errors.CaudalError], ExitStatus] = {
    errors.RejectedRowError: ExitStatus.REJECTED_ROW,
    errors.UsageError: ExitStatus.USAGE,
    errors.ApplicationError: ExitStatus.APPLICATION,
    errors.DataError: ExitStatus.DATA,
    errors.QueryError: ExitStatus.QUERY,
    errors.MissingPackageError: ExitStatus.MISSING_PACKAGE,
    errors.StoreError: ExitStatus.STORE,
    errors.BrokerError: ExitStatus.BROKER,
    errors.EngineError: ExitStatus.ENGINE,
    errors.SparkFailedError: ExitStatus.SPARK,
    errors.FormatError: ExitStatus.STORE,
    errors.OutputError: ExitStatus.OUTPUT,
    errors.JobError: ExitStatus.JOB,
    errors.UnreachableError: ExitStatus.UNREACHABLE,
}


def status_of(error: errors.CaudalError) -> ExitStatus:
    """Return the exit status for an error: of its class, else of the nearest parent class."""
    for kind in type(error).__mro__:
        if kind in _BY_ERROR:
            return _BY_ERROR[kind]
    return ExitStatus.BUG
