"""The entry of the command line: `main` handles errors, the commands are the happy path.

Signals and streams come first, before anything that takes time to import, so that Ctrl-C in the
first second is the same quiet interrupt as later, and SIGTERM leaves no half-written file behind.
"""

import signal
import sys
from types import FrameType

from caudal.cli import streams
from caudal.cli.status import ExitStatus, status_of
from caudal.errors import CaudalError
from caudal.version import __version__

_ENDINGS = {
    signal.SIGINT: ("interrupted", ExitStatus.INTERRUPTED),
    signal.SIGTERM: ("terminated", ExitStatus.TERMINATED),
    signal.SIGHUP: ("the terminal was closed", ExitStatus.HUNG_UP),
}
_RECEIVED: list[int] = []  # signals; libraries may turn them into errors of their own


def main(arguments: list[str] | None = None) -> int:
    """Run a command; every error becomes one line and an exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    try:
        if arguments is None:
            streams.make_safe()
            _listen()
            sys.meta_path.insert(0, _WithoutPandas())
        status = _run([argument for argument in given if argument != "--debug"] or ["--help"])
    except BaseException as error:
        line, status = _explained(error)
        if debug:
            sys.excepthook(type(error), error, error.__traceback__)
        if line:
            print(f"caudal: {line}", file=sys.stderr)
        if arguments is None:
            streams.abandon_output()
    if arguments is None:
        sys.exit(status)
    return int(status)


class _WithoutPandas:
    """Arrow loads pandas wherever it is installed, to know its objects when it meets them: half a
    second, and no command meets any."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError("no command of Caudal uses pandas", name=name)


def _listen() -> None:
    """Ends by signal unwind the stack, so that every file in the making is removed."""
    for number in _ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and `&` in scripts set it
            signal.signal(number, _note)


def _note(number: int, frame: FrameType | None) -> None:
    del frame
    _RECEIVED.append(number)
    raise KeyboardInterrupt


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:  # scripts ask often: it waits for nothing
        print(f"caudal {__version__}", flush=True)
        return ExitStatus.OK
    from caudal.cli.program import make_program

    outcome = make_program().main(arguments, prog_name="caudal", standalone_mode=False)
    status = int(outcome) if isinstance(outcome, int) else int(ExitStatus.OK)
    if status == ExitStatus.INTERRUPTED:  # typer's word for Ctrl-C
        raise KeyboardInterrupt
    sys.stdout.flush()
    return status


def _explained(error: BaseException) -> tuple[str, int]:
    """What to say of an error, if anything, and the status to end with."""
    from typer import Abort
    from typer.exceptions import TyperException

    interrupted = isinstance(error, KeyboardInterrupt | Abort) or "Query interrupted" in str(error)
    if _RECEIVED or interrupted:  # whatever a library made of it
        return _ENDINGS[signal.Signals(_RECEIVED[0]) if _RECEIVED else signal.SIGINT]
    match error:
        case CaudalError():
            return str(error), status_of(error)
        case TyperException():
            return _usage_line(error), ExitStatus.USAGE
        case BrokenPipeError():
            return "", ExitStatus.OK  # whoever reads has read enough
        case SystemExit():  # typer's answer to a broken pipe
            return "", ExitStatus.OK
        case OSError():
            return _refusal(error), ExitStatus.OUTPUT
        case MemoryError():
            return "there is not enough memory: try --memory-limit 1GB", ExitStatus.QUERY
    line = f"this is a bug in Caudal: {type(error).__name__}: {error} (--debug shows where)"
    return line, ExitStatus.BUG


def _refusal(error: OSError) -> str:
    """An error of the machine that nobody has explained yet: mostly standard output's."""
    reason = error.strerror or str(error)
    return f"cannot write to {error.filename or 'standard output'}: {reason}"


def _usage_line(error: Exception) -> str:
    """Typer's complaint about the command, as one line."""
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    line = " ".join(text.replace("Value error, ", "").split()).rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{line} ({context.command_path if context else 'caudal'} --help shows how)"
