"""Choice of a result's representation from the Accept header."""

from collections.abc import Iterator, Sequence

ARROW = "application/vnd.apache.arrow.stream"
RESULT = "application/vnd.caudal.result"
JSON = "application/json"
CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
OFFERED = (ARROW, RESULT, JSON, CSV, PARQUET)  # the first one if the client has no preference


def choose(accept: str | None, offered: Sequence[str] = OFFERED) -> str | None:
    """Return the best offered media type; None if the client accepts none of them.

    >>> choose("text/html, application/*;q=0.5, text/csv;q=0.8")
    'text/csv'
    """
    wanted = sorted(_ranges(accept or "*/*"), key=lambda one: -one[1])
    for pattern, quality in wanted:
        if quality > 0:
            for one in offered:
                if _matches(pattern, one):
                    return one
    return None


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name:
            yield name.lower(), _quality(parameters)


def _quality(parameters: Sequence[str]) -> float:
    for one in parameters:
        name, _, value = one.partition("=")
        if name.strip().lower() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0


def _matches(pattern: str, name: str) -> bool:
    kind, _, detail = pattern.partition("/")
    return pattern in ("*/*", "*", name) or (detail == "*" and name.startswith(f"{kind}/"))
