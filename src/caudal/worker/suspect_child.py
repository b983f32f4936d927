"""The child process of one suspect task: it computes and reports what happened, nothing more.

Rules
1. It reports facts, one JSON object per line of the file `report`. Its parent judges them
   (`caudal.worker.suspects`). Until it imports the computation, it imports only the standard
   library, so hardly anything can fail before the task's own work begins.
2. It dies with its parent: the kernel kills it (PR_SET_PDEATHSIG), even inside an endless native
   loop that never releases the interpreter lock.
3. Limits begin with the computation. The CPU time and memory of start and imports are added to
   them, because a slow start is not the task's fault. Nor is a crash before `begun` is reported.
4. The last report is written before any clean-up, and clean-up is skipped. So a library that
   crashes at shutdown does not influence the verdict.

Run as a script by path, because `-m caudal...` would import all of Caudal before rule 2 holds.
"""

import contextlib
import ctypes
import errno
import importlib
import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ARGUMENTS, INPUTS, OUTPUT, REPORT = "arguments", "inputs", "output", "report"

Computation = Callable[[bytes, Path], bytes]

_PR_SET_PDEATHSIG = 1
_MESSAGE_CHARACTERS = 4_000


def main(parent: int, folder: Path, entry: str, cpu_seconds: int, data_bytes: int) -> None:
    """Run `entry` ("module:function") on the arguments and inputs in `folder`."""
    die_with(parent)
    compute = _function(entry)
    arguments = (folder / ARGUMENTS).read_bytes()
    _limit(cpu_seconds, data_bytes)
    _report(folder, event="begun")
    try:
        output = compute(arguments, folder / INPUTS)
        size = (folder / OUTPUT).write_bytes(output)
    except BaseException as error:  # report every error to the parent
        soft_limit(resource.RLIMIT_DATA, resource.RLIM_INFINITY)  # the report needs some memory
        _report(folder, event="raised", **described(error))
    else:
        _report(folder, event="done", size=size)
    os._exit(0)


def kind_name(kind: type[BaseException]) -> str:
    """Return the name of an exception's class in a report."""
    return f"{kind.__module__}.{kind.__qualname__}"


def die_with(parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit("the parent died first")


def _function(entry: str) -> Computation:
    module, _, name = entry.partition(":")
    found: Computation = getattr(importlib.import_module(module), name)
    return found


def _limit(cpu_seconds: int, data_bytes: int) -> None:
    """Set the limits, and make this process the first to be killed if memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)  # children inherit an ignored signal
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    soft_limit(resource.RLIMIT_CORE, 0)
    soft_limit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + cpu_seconds)
    soft_limit(resource.RLIMIT_DATA, used_data_bytes() + data_bytes)


def soft_limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    unlimited = resource.RLIM_INFINITY
    lowered = hard if value == unlimited else value if hard == unlimited else min(value, hard)
    resource.setrlimit(kind, (lowered, hard))


def used_data_bytes() -> int:
    """Return the private writable memory so far, as RLIMIT_DATA counts it."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
    return int(pages) * resource.getpagesize()


def described(error: BaseException) -> dict[str, object]:
    """Return the classes of the error and its causes, each with its bases, and the message."""
    chain = list(_chain(error))
    return {
        "kinds": [[kind_name(kind) for kind in _bases(one)] for one in chain],
        "message": _told(error)[:_MESSAGE_CHARACTERS],
        "memory": any(_is_of_memory(one) for one in chain),
    }


def _told(error: BaseException) -> str:
    """Return the message with its notes, which show the place of a mistake in SQL."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def _bases(error: BaseException) -> list[type[BaseException]]:
    return [kind for kind in type(error).__mro__ if issubclass(kind, BaseException)]


def _is_of_memory(error: BaseException) -> bool:
    is_refusal = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return is_refusal or isinstance(error, MemoryError)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _report(folder: Path, **fact: object) -> None:
    with (folder / REPORT).open("a", encoding="utf-8") as file:
        file.write(json.dumps(fact) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
