"""Where answers go, and in which format: a pure decision, made before any file is read.

1. Without --out, answers go to standard output.
2. `--out NAME.csv` (or another ending of a format) is one file, unless a folder has that name. The
   ending chooses the format; --format overrides it.
3. Any other --out is a folder with one file per query.
4. One file or stream holds one answer. JSON holds several: an object with one array per query.
5. Rows of an answer that still grows are in a file NAME.partial.csv beside that of the answer.
"""

from dataclasses import dataclass
from pathlib import Path

from caudal.cli.formats import BINARY, ENDINGS, SCREEN, Format
from caudal.errors import UsageError


@dataclass(frozen=True)
class Destination:
    """The format of answers, and the file or folder for them; neither means standard output."""

    form: Format
    file: Path | None = None
    folder: Path | None = None

    @property
    def is_screen(self) -> bool:
        return self.file is None and self.folder is None and self.form in SCREEN

    @property
    def takes_all_at_once(self) -> bool:
        """Return whether all answers go into one JSON object."""
        return self.folder is None and self.form is Format.JSON

    def path_of(self, query: str) -> Path | None:
        """Return the file for one answer; None for standard output."""
        return self.file if self.folder is None else self.folder / f"{query}{self.form.ending}"

    def partial_path(self, query: str) -> Path | None:
        """Return the file for the rows of an answer that still grows; None if there is none."""
        path = None if self.takes_all_at_once else self.path_of(query)
        if path is None or (path.exists() and not path.is_file()):
            return None
        return path.with_name(f"{path.stem}.partial.csv")


def choose_destination(
    form: Format | None, out: Path | None, queries: int, *, on_terminal: bool = False
) -> Destination:
    """Return the destination of this many answers. `on_terminal`: standard output is one."""
    if out is None:
        chosen = Destination(form or Format.TABLE)
    elif out.suffix.lower() in ENDINGS and not out.is_dir():
        chosen = Destination(_in_file(form or ENDINGS[out.suffix.lower()]), file=out)
    else:
        chosen = Destination(_in_file(form or Format.CSV), folder=out)
    if queries != 1 and not (chosen.folder or chosen.is_screen or chosen.takes_all_at_once):
        raise UsageError(
            f"--format {chosen.form.value} gives one file per query: add --out DIR, or choose one "
            "with -q"
        )
    if out is None and on_terminal and chosen.form in BINARY:
        raise UsageError(
            f"--format {chosen.form.value} cannot go to a terminal: add --out FILE, or redirect"
        )
    return chosen


def _in_file(form: Format) -> Format:
    return Format.CSV if form in SCREEN else form
