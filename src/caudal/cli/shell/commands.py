"""The commands of the prompt, which begin with a dot."""

from caudal.errors import UsageError

COMMANDS = {
    "tables": ("", "List the tables."),
    "schema": ("[TABLE]", "Show the columns of a table, or of all, with their types."),
    "explain": ("SELECT", "Show what a SELECT reads and its operators, in order."),
    "mode": ("[FORMAT]", "Show or choose how answers are written: table, fields, csv, json …"),
    "output": ("[FILE]", "Write the answers that follow to this file; without a name, to here."),
    "timing": ("[on|off]", "Show the time of each answer, or do not."),
    "help": ("", "Show this list."),
    "quit": ("", "Leave; so do .exit and Ctrl-D."),
}
_OTHER_NAMES = {"exit": "quit", "timer": "timing"}


def parse_command(line: str) -> tuple[str, str]:
    """Return the name and the argument of a command."""
    word, _, argument = line.lstrip(".").partition(" ")
    name = word.strip().lower().rstrip(";")
    name = _OTHER_NAMES.get(name, name)
    if name not in COMMANDS:
        raise UsageError(f"no command .{name}: .help lists the commands")
    return name, argument.strip()


def help_text() -> str:
    """Return the list of commands."""
    lines = [f"  .{name} {argument}".ljust(22) + about
             for name, (argument, about) in COMMANDS.items()]  # fmt: skip
    return "\n".join(["A SELECT ends with a semicolon and may have several lines.", *lines])
