"""The prompt on a terminal: prompt_toolkit with history, completion and several lines."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from caudal.cli.shell.statements import is_complete, statements
from caudal.cli.shell.suggestions import KnownNames, suggest

_MOST_HISTORY_BYTES = 1 << 20


class NameCompleter(Completer):
    """Completes tables, columns, functions and commands; files inside of quotes."""

    def __init__(self, catalog: KnownNames) -> None:
        self._catalog = catalog
        self._paths = PathCompleter(expanduser=False)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        typed = _open_text(before)
        if typed is None and before.lstrip().startswith(".output "):
            typed = before.lstrip().removeprefix(".output ")
        if typed is not None:
            yield from self._paths.get_completions(Document(typed), complete_event)
            return
        for found in suggest(before, self._catalog):
            yield Completion(found.text, -found.length, display_meta=found.kind)


def typed_statements(catalog: KnownNames) -> Iterator[str]:
    """Yield statements and commands until Ctrl-D. Ctrl-C discards the lines typed so far."""
    session: PromptSession[str] = PromptSession(
        history=_history(),
        completer=NameCompleter(catalog),
        complete_while_typing=False,
        multiline=True,
        prompt_continuation=lambda width, number, wrapped: "...> ".rjust(width),
        key_bindings=_keys(),
        enable_open_in_editor=True,
    )
    while True:
        try:
            text = session.prompt("caudal> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        yield from statements(text)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _run_or_new_line(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=completion_is_selected)
    def _take_completion(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return keys


def _open_text(before: str) -> str | None:
    """Return what stands after an opening quote; None if no text is open."""
    if before.count("'") % 2 == 0:
        return None
    return before.rpartition("'")[2]


def _history() -> History:
    """Return the history in the user's state folder; a temporary one if it cannot be written."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(home) / "caudal" / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a"):
            path.chmod(0o600)
        _shorten(path)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _shorten(path: Path) -> None:
    """Delete the older half of a history that has grown too large."""
    if path.stat().st_size <= _MOST_HISTORY_BYTES:
        return
    kept = path.read_bytes()[-_MOST_HISTORY_BYTES // 2 :]
    path.write_bytes(kept[kept.find(b"\n# ") :])
