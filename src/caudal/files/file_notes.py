"""What was found about the forms of files, to be told to whoever reads them."""

from collections.abc import Iterable, Iterator

from caudal.files.inputs import InputFile


def file_notes(files: Iterable[InputFile]) -> Iterator[str]:
    """Yield each note once, with the first file that it is about."""
    told: dict[str, str] = {}
    for file in files:
        for note in _notes(file):
            told.setdefault(note, file.name)
    yield from (f"{name}: {note}" for note, name in told.items())


def _notes(file: InputFile) -> tuple[str, ...]:
    if file.kind != "excel":
        return file.notes
    from caudal.files.typed import typed_notes  # the reader of workbooks loads slowly

    return typed_notes(file)
