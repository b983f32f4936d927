"""Which sources of a load are new: pure decisions, with the words for the others.

1. A source is known by the digest of its content, for each table: it is loaded once,
   under whatever name it comes.
2. A file whose name was loaded before with another content is refused: most of its rows would be
   loaded twice. `again` loads it as a new file.
3. The id of a load is derived from what it loads and from everything that decides its bytes. So the
   same command finds the files of a killed load and goes on behind them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from caudal.datasets.contents import Contents, HeldSource, last_vacuum
from caudal.errors import UsageError
from caudal.formats.digest import digest


@dataclass(frozen=True)
class Offered:
    """A source that somebody wants to load: a file, a part of a stream, or rows."""

    table: str
    name: str
    bytes: int
    digest: str
    shown: str = ""  # the name in messages, if it is not `name`
    content: str = ""  # digest of the content, if `digest` is that of a key

    @property
    def identity(self) -> tuple[str, str]:
        return self.table, self.digest


@dataclass(frozen=True)
class Skipped:
    """A source that is not loaded, and why."""

    source: Offered
    reason: str

    def told(self) -> str:
        return f"{self.source.shown or self.source.name} skipped: {self.reason}"


@dataclass(frozen=True)
class Sorted:
    """The sources of a load: the new ones, and those that are skipped."""

    new: tuple[Offered, ...]
    skipped: tuple[Skipped, ...]


def sort_sources(contents: Contents, offered: Iterable[Offered], *, again: bool = False) -> Sorted:
    """Decide which sources to load. Raise UsageError for a file that has changed."""
    known = {(held.table, held.digest): held for held in contents.sources}
    new: dict[tuple[str, str], Offered] = {}
    skipped = []
    for source in offered:
        if (held := known.get(source.identity)) is not None:
            skipped.append(Skipped(source, _loaded(source, held)))
        elif source.identity in new:
            same = new[source.identity].name
            skipped.append(Skipped(source, f"it has the same content as {same}"))
        else:
            new[source.identity] = source
    if not again:
        _refuse_changed(contents, new.values())
    return Sorted(tuple(new.values()), tuple(skipped))


def still_new(contents: Contents, sources: Sequence[Offered]) -> list[bool]:
    """Return of each source whether no version has brought it yet."""
    known = {(held.table, held.digest) for held in contents.sources}
    return [source.identity not in known for source in sources]


def load_id(contents: Contents, sources: Sequence[Offered], batch_bytes: int, made_by: str) -> str:
    """Return the id of a load. `made_by` names the versions of what writes the files."""
    what = [[source.table, source.digest, *filter(None, [source.content])] for source in sources]
    return digest(msgspec.json.encode([what, batch_bytes, last_vacuum(contents), made_by]))


def _loaded(source: Offered, held: HeldSource) -> str:
    as_name = "" if held.name == source.name else f" as {held.name}"
    return f"version {held.version} loaded it{as_name}"


def _refuse_changed(contents: Contents, new: Iterable[Offered]) -> None:
    names = {(held.table, held.name): held for held in contents.sources if held.part is None}
    for source in new:
        if (held := names.get((source.table, source.name))) is not None:
            raise UsageError(
                f"{source.shown or source.name} has changed since version {held.version} loaded it "
                f"({held.bytes:,} bytes then, {source.bytes:,} now), and its rows would be loaded "
                "twice: load only the new rows, as another file, or add --again to load all of it"
            )
