"""Why Spark failed, as one line: neither traces of Java nor those of Python are for users."""

import contextlib
import logging
import re
import threading
from collections.abc import Iterator
from traceback import walk_tb
from types import TracebackType

from caudal.errors import CaudalError, SparkFailedError

_MOST_REASON = 300
_PACKAGES = frozenset({"pyspark", "py4j", "grpc"})
_OF_JVM = frozenset({"pyspark", "py4j"})  # which talk to it, but for Connect
_FRAME = re.compile(r"^(at [\w.$<>/@]+\(.*\)|\.\.\. \d+ more|Driver stacktrace:|JVM stacktrace:)$")
_CAUSE = re.compile(r"^Caused by: ")
_CLASS = r"(?:java|javax|jdk|sun|org|com|net|io|scala)\.(?:[\w$]+\.)*[A-Z][\w$]*"
_JAVA = re.compile(rf'^(?:Exception in thread "[^"]*" |: )?{_CLASS}: \S')
_PYTHON_FRAME = re.compile(r'^\s+File ".*", line \d+')
_CALL = re.compile(r"^An error occurred while calling \S+$")
_NOISE = re.compile(
    rf'^(\[[A-Z0-9_.]+\]|Exception in thread "[^"]*"|: |(?:pyspark|py4j|caudal)\.\S+:|{_CLASS}:)\s*'
)
_TOO_LARGE = "is bigger than spark.driver.maxResultSize"
JVM_ENDED = "its JVM has ended or does not answer: start a new session"


@contextlib.contextmanager
def spark_errors(what: str) -> Iterator[None]:
    """Raise errors of Spark as one line, without traces of Java."""
    try:
        yield
    except CaudalError:
        raise
    except Exception as error:
        raise SparkFailedError(f"{what}: {reason_of(error)}") from error


@contextlib.contextmanager
def errors_of_spark() -> Iterator[None]:
    """Do the same for errors of Spark's own packages, which building a frame raises too. Other
    errors stay as they are."""
    try:
        yield
    except CaudalError:
        raise
    except Exception as error:
        if not _is_of_spark(error):
            raise
        raise SparkFailedError(f"Spark failed: {reason_of(error)}") from error


def _is_of_spark(error: Exception) -> bool:
    """Return whether the error is of a type of Spark's packages, or was raised in their code and
    not in code of Caudal that they called."""
    if _package(type(error).__module__) in _PACKAGES:
        return True
    packages = map(_package, _modules(error.__traceback__))
    known = [name for name in packages if name in {*_PACKAGES, "caudal"}]
    return bool(known) and known[-1] in _PACKAGES


def _modules(trace: TracebackType | None) -> list[str]:
    return [str(frame.f_globals.get("__name__", "")) for frame, _ in walk_tb(trace)]


def _package(module: str) -> str:
    return module.partition(".")[0]


def reason_of(error: BaseException) -> str:
    """Return the line that says why, also for errors of the connection to the JVM."""
    raised: BaseException | None = error
    while raised is not None:
        if isinstance(raised, ConnectionError | EOFError) or _is_py4j(raised):
            return JVM_ENDED if _is_of_jvm(raised) else f"the connection to it broke ({raised})"
        raised = raised.__cause__ or raised.__context__
    return one_reason(str(error)) if str(error) else type(error).__name__


def _is_py4j(error: BaseException) -> bool:
    return type(error).__name__ == "Py4JNetworkError"


def _is_of_jvm(error: BaseException) -> bool:
    """Return whether an error of a connection is one of that to the JVM of this process."""
    modules = _modules(error.__traceback__)
    is_connect = any(name.startswith(("pyspark.sql.connect", "grpc")) for name in modules)
    return _is_py4j(error) or (not is_connect and bool({*map(_package, modules)} & _OF_JVM))


def one_reason(text: str) -> str:
    """Return the line of an error of Spark that says why, and what to do if that is known."""
    chosen = next(_reasons(text), "no reason is known")
    while chosen != (shorter := _NOISE.sub("", chosen)) and shorter:
        chosen = shorter
    if _TOO_LARGE in chosen:
        return f"{chosen[:_MOST_REASON].rstrip('.')}: set it higher for a new session"
    return chosen[:_MOST_REASON]


def _reasons(text: str) -> Iterator[str]:
    """Yield the lines that may say why, the best one first."""
    yield from reversed(list(_raised_in_python(text)))
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    causes = [_CAUSE.sub("", line) for line in lines if _CAUSE.match(line)]
    yield from (cause for cause in reversed(causes) if _JAVA.match(cause))
    yield from (line for line in lines if _JAVA.match(line))
    yield from (line for line in lines if not _FRAME.match(line) and not _CALL.match(line))


def _raised_in_python(text: str) -> Iterator[str]:
    """Yield the last line of each trace of Python."""
    is_trace = False
    for line in text.splitlines():
        if _PYTHON_FRAME.match(line):
            is_trace = True
        elif is_trace and line.strip() and not line[0].isspace():
            is_trace = False
            yield line.strip()


class _Quiet(logging.Filter):
    """Drops what py4j says to the root logger: errors of calls, with their traces. Each is also
    raised."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "py4j" not in record.pathname.replace("\\", "/").split("/")


class _Unset(logging.Handler):
    """Prints as a root logger without handlers does. Without one, the first error of py4j would
    set up the logging of the whole program."""

    def emit(self, record: logging.LogRecord) -> None:
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and not self._is_handled(record.name):
            last.handle(record)

    def _is_handled(self, name: str) -> bool:
        """Return whether the logger has handlers of its own: py4j's does nothing."""
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return True
            logger = logger.parent
        return False


_LOCK = threading.Lock()
_QUIET, _UNSET = _Quiet(), _Unset()
_blocks = 0


@contextlib.contextmanager
def quiet_logs() -> Iterator[None]:
    """Keep traces of py4j away from the terminal: an interrupted call logs one."""
    root = logging.getLogger()
    global _blocks
    with _LOCK:
        _blocks += 1
        root.addFilter(_QUIET)
        if not root.handlers:
            root.addHandler(_UNSET)
    try:
        yield
    finally:
        with _LOCK:
            _blocks -= 1
            if not _blocks:
                root.removeFilter(_QUIET)
                root.removeHandler(_UNSET)
