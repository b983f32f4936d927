"""Names as SQL text."""


def quote(name: str) -> str:
    """Return an identifier as SQL text."""
    return '"' + name.replace('"', '""') + '"'
