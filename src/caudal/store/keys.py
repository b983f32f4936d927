"""The rules for keys. They are the same in every store, so that data can move between stores.

1. A key is a list of names joined by `/`. It has at most 900 bytes of UTF-8 (S3 allows 1,024, and
   the store's own prefix needs room). A name has at most 255 bytes (the limit of a file name).
2. No name is empty, `.` or `..`.
3. Control characters, backslashes, lone surrogates, U+FFFE and U+FFFF are not allowed: some S3
   servers, or their XML, lose or change them. Everything else is allowed and is returned
   unchanged: there is no Unicode normalisation, and upper and lower case differ.
4. Names that begin with `.caudal-` are reserved for the store. Callers may write only to the
   probe's folder. Nothing below a reserved name is ever listed.
"""

import re

from caudal.errors import UsageError

OWN = ".caudal-"
PROBE_FOLDER = ".caudal-probe"
MAX_KEY_BYTES = 900
MAX_NAME_BYTES = 255

# The fast path: nearly all keys match this and need no further check.
_NAME = rf"(?!{re.escape(OWN)})\.?[A-Za-z0-9_][A-Za-z0-9_.=-]{{0,99}}"
_PLAIN = re.compile(rf"(?=.{{1,{MAX_KEY_BYTES}}}\Z){_NAME}(?:/{_NAME})*")
_PLAIN_NAME = re.compile(_NAME)
_FORBIDDEN = re.compile("[\x00-\x1f\x7f\\\\\ud800-\udfff\ufffe\uffff]")


def check_key(key: str) -> None:
    """Raise UsageError unless this string can be the key of an object."""
    if _PLAIN.fullmatch(key):
        return
    names = key.split("/")
    if names[0] == PROBE_FOLDER:
        names = names[1:] or [""]
    if not all(map(is_name, names)):
        raise UsageError(f"{key!r} cannot be a key: {_reason(names)}")
    if len(key.encode()) > MAX_KEY_BYTES:
        raise UsageError(f"{key[:40]!r}… cannot be a key: longer than {MAX_KEY_BYTES} bytes")


def check_prefix(prefix: str) -> None:
    """Raise UsageError unless keys can begin with this prefix.

    A prefix is whole names, followed by at most one incomplete name.
    """
    folder, _, _ = prefix.rpartition("/")
    if folder or prefix.startswith("/"):
        check_key(folder)


def check_range(offset: int, length: int | None) -> None:
    """Raise UsageError for a range that begins before the object or has a negative length."""
    if offset < 0 or (length is not None and length < 0):
        raise UsageError(f"cannot read {length} bytes from {offset}: neither may be negative")


def is_name(name: str) -> bool:
    """Return whether this can be one part of a key that callers may use."""
    return _PLAIN_NAME.fullmatch(name) is not None or (
        name not in {"", ".", ".."}
        and not name.startswith(OWN)
        and _FORBIDDEN.search(name) is None
        and len(name.encode()) <= MAX_NAME_BYTES
    )


def _reason(names: list[str]) -> str:
    name = next(name for name in names if not is_name(name))
    if name in {"", ".", ".."}:
        return "a name in it is empty, '.' or '..'"
    if name.startswith(OWN):
        return f"names that begin with {OWN!r} are reserved for the store"
    if _FORBIDDEN.search(name):
        return "it holds a control character, a backslash or broken Unicode"
    return f"a name in it is longer than {MAX_NAME_BYTES} bytes"
