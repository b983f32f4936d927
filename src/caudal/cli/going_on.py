"""What a command says when it ends before its work is done: what remains, and how to go on."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from caudal.cli.consoles import message_console
from caudal.errors import StoreError, UnreachableError

_SAME = "run the same command to go on"


@contextmanager
def telling(how: Callable[[], str]) -> Iterator[None]:
    """Say how to go on if the block is interrupted, no gateway answers, or a store fails."""
    try:
        yield
    except KeyboardInterrupt:
        message_console().print(how(), soft_wrap=True, highlight=False, markup=False)
        raise
    except UnreachableError as error:
        raise UnreachableError(f"{error}; {how()}") from None
    except StoreError as error:
        error.add_note(how())
        raise


def of_load(dataset: str, job: str, *, is_sent: bool, way: Sequence[str]) -> str:
    """Return what becomes of a load into a dataset of a cluster; `job` is "" if there is none."""
    if not job:
        return f"nothing was sent: {_SAME}"
    cancel = shlex.join(["caudal", "cancel", job, *way])
    if is_sent:
        versions = shlex.join(["caudal", "versions", dataset, *way])
        return (
            f"all was sent, and the cluster finishes the load without this command: `{versions}` "
            f"shows its version; or drop the load with: {cancel}"
        )
    return (
        f"nothing of this load is in {dataset} yet: {_SAME}, and what has arrived is not sent "
        f"again; or drop the load with: {cancel}"
    )


def of_local_load(place: str) -> str:
    """Return what becomes of a load into a folder or on S3."""
    return (
        f"{place} holds this load whole or not at all: {_SAME}, and what was written is not "
        "cleaned again"
    )


def of_stream() -> str:
    return (
        "rows of which a line was printed are loaded: send the whole stream again to go on, and "
        "they are skipped"
    )


def of_question(job: str, way: Sequence[str]) -> str:
    """Return what becomes of a question to a dataset of a cluster; `job` is "" if there is none."""
    if not job:
        return f"nothing was asked: {_SAME}"
    cancel = shlex.join(["caudal", "cancel", job, *way])
    return (
        "the cluster goes on with the answer: ask again, and what is computed is not computed "
        f"again; or cancel it with: {cancel}"
    )
