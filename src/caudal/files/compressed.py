"""The text of a compressed file: gzip, zstd, bz2, xz, or a zip of one file.

The ending of the name decides; without a known one, the first bytes do. All of them are unpacked
piece by piece, so what an archive unpacks to costs time, never memory.
"""

import lzma
import zipfile
import zlib
from io import BufferedReader
from typing import IO, Any

import pyarrow as pa

from caudal.errors import DataError

COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
}
DAMAGE = (OSError, pa.ArrowException, lzma.LZMAError, zipfile.BadZipFile, zlib.error, EOFError)


def compression(suffix: str, first: bytes) -> str | None:
    """Return how a file is compressed, by its ending or its first bytes."""
    if suffix in COMPRESSION:
        return COMPRESSION[suffix]
    return next((name for magic, name in _MAGIC.items() if first.startswith(magic)), None)


def unpacked(file: BufferedReader, codec: str, name: str) -> Any:
    """Return a stream of the unpacked bytes, with `read` and `readinto`."""
    if codec == "xz":
        return lzma.LZMAFile(file)
    if codec == "zip":
        return _only_member(file, name)
    return pa.CompressedInputStream(_Lent(file), codec)


class _Lent:
    """A file that whoever reads it cannot close: Arrow closes what it read to the end."""

    closed = False

    def __init__(self, file: BufferedReader) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: the owner closes the file."""


def _only_member(file: BufferedReader, name: str) -> IO[bytes]:
    if not file.seekable():
        raise DataError(f"{name} is a zip archive: save it to a file, then name that")
    archive = zipfile.ZipFile(file)
    members = [one for one in archive.infolist()
               if not one.is_dir() and not one.filename.startswith("__MACOSX/")]  # fmt: skip
    if len(members) != 1:
        shown = ", ".join(one.filename for one in members[:5])
        raise DataError(f"{name} holds {len(members)} files ({shown}): unpack it, then name one")
    if members[0].flag_bits & 1:
        raise DataError(f"{name} is encrypted: unpack it first")
    return archive.open(members[0])
