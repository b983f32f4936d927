"""Decides which files executors read themselves."""

from collections.abc import Iterable

from caudal.files.inputs import InputFile
from caudal.files.places import LocalPlace
from caudal.run_options import SparkInputs


def reachable_files(
    files: Iterable[InputFile], inputs: SparkInputs, *, is_local: bool
) -> frozenset[str]:
    """Return the names of the files of which executors read ranges. With `is_local`, executors are
    on this machine; others are not expected to have its files. What its name does not find again
    (standard input, a pipe, a name that is not UTF-8) travels."""
    if inputs is SparkInputs.SENT:
        return frozenset()
    reads_local = is_local or inputs is SparkInputs.SHARED

    def is_reached(file: InputFile) -> bool:
        is_seen = reads_local or not isinstance(file.place, LocalPlace)
        return is_seen and file.place.is_named and file.has_ranges

    every = list(files)
    others = {file.name for file in every if not file.place.is_named}  # may be the name of another
    return frozenset(file.name for file in every if file.name not in others and is_reached(file))
