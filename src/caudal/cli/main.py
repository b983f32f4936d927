"""The entry point of the command line. `main` handles all errors; commands only raise them.

Signals and streams are set up before slow imports. So Ctrl-C in the first second gives the same
short message as later, and SIGTERM leaves no half-written file behind.
"""

import atexit
import contextlib
import gc
import os
import signal
import sys
from types import FrameType

from caudal.cli import elapsed, streams  # noqa: F401 - `elapsed` begins to count
from caudal.cli.interrupts import RECEIVED
from caudal.cli.status import ExitStatus, status_of
from caudal.errors import CaudalError
from caudal.version import __version__

_ENDINGS = {
    signal.SIGINT: ("interrupted", ExitStatus.INTERRUPTED),
    signal.SIGTERM: ("terminated", ExitStatus.TERMINATED),
    signal.SIGHUP: ("the terminal was closed", ExitStatus.HUNG_UP),
}
_STATUS: list[int] = []  # of this process, once it is known


def main(arguments: list[str] | None = None) -> int:
    """Run a command; turn every error into one line and an exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    try:
        if arguments is None:
            gc.disable()  # until the command is loaded
            streams.make_safe()
            _listen()
            atexit.register(_leave)
            sys.meta_path.insert(0, _WithoutPandas())
        status = _run([argument for argument in given if argument != "--debug"] or ["--help"])
    except BaseException as error:
        line, status = _explained(error)
        if debug:
            sys.excepthook(type(error), error, error.__traceback__)
        if line:
            print(f"caudal: {line}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        if arguments is None and isinstance(error, CaudalError):
            streams.finish_output()  # what the doctor found, for instance
        elif arguments is None:
            streams.abandon_output()
    if arguments is None:
        _STATUS.append(int(status))
        sys.exit(status)
    return int(status)


def _leave() -> None:
    """End the process without taking apart its modules, which takes a tenth of a short command.

    It is registered first, so it runs last: threads have ended, and temporary files are deleted.
    """
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        if _STATUS:
            os._exit(_STATUS[0])


_NEED_PANDAS = frozenset({"transformers", "pyspark"})


class _WithoutPandas:
    """An import hook that hides pandas from Arrow.

    Arrow imports an installed pandas to recognize its objects. That takes half a second, and no
    command handles such objects. Transformers and PySpark fail if it is hidden.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        if name == "pandas" and _NEED_PANDAS.isdisjoint(sys.modules):
            raise ModuleNotFoundError("no command of Caudal uses pandas", name=name)


def _listen() -> None:
    """Make signals unwind the stack, so that every unfinished file is deleted."""
    for number in _ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and `&` in scripts ignore it
            signal.signal(number, _note)


def _note(number: int, frame: FrameType | None) -> None:
    del frame
    RECEIVED.append(number)
    raise KeyboardInterrupt


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:  # fast path: scripts call it often
        print(f"caudal {__version__}", flush=True)
        return ExitStatus.OK
    from caudal.cli.program import make_program

    if "_CAUDAL_COMPLETE" in os.environ:  # a shell asks how to complete a command
        from typer._completion_classes import completion_init

        completion_init()
    outcome = make_program().main(arguments, prog_name="caudal", standalone_mode=False)
    status = int(outcome) if isinstance(outcome, int) else int(ExitStatus.OK)
    if status == ExitStatus.INTERRUPTED:  # typer returns this on Ctrl-C
        raise KeyboardInterrupt
    sys.stdout.flush()
    return status


def _explained(error: BaseException) -> tuple[str, int]:
    """Return the message for an error, perhaps empty, and the exit status."""
    from typer import Abort
    from typer.exceptions import TyperException

    from caudal import extras

    interrupted = isinstance(error, KeyboardInterrupt | Abort) or "Query interrupted" in str(error)
    if RECEIVED or interrupted:  # whichever error a library raised for it
        return _ENDINGS[signal.Signals(RECEIVED[0]) if RECEIVED else signal.SIGINT]
    if isinstance(error, ModuleNotFoundError):
        error = extras.explained(error) or error
    match error:
        case CaudalError():
            return str(error), status_of(error)
        case TyperException():
            return _usage_line(error), ExitStatus.USAGE
        case BrokenPipeError():
            return "", ExitStatus.OK  # the reader closed the pipe
        case SystemExit():  # typer raises it on a broken pipe
            return "", ExitStatus.OK
        case OSError():
            return _refusal(error), ExitStatus.OUTPUT
        case MemoryError():
            return "not enough memory: try --memory-limit 1GB", ExitStatus.QUERY
    line = f"this is a bug in Caudal: {type(error).__name__}: {error} (--debug shows where)"
    return line, ExitStatus.BUG


def _refusal(error: OSError) -> str:
    """Return the message for an OSError not handled elsewhere, mostly of standard output."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"cannot write to standard output: {reason}"
    return f"cannot use {error.filename}: {reason}"


def _usage_line(error: Exception) -> str:
    """Return typer's error about the command as one line."""
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    line = " ".join(text.replace("Value error, ", "").split()).rstrip(".") or "give a command"
    context = getattr(error, "ctx", None)
    return f"{line} ({context.command_path if context else 'caudal'} --help shows how)"
