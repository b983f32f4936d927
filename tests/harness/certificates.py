"""Certificates for tests, made by openssl: an authority, and servers that it vouches for."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, PEM files."""

    certificate: Path
    key: Path


def make_authority(folder: Path) -> Pair:
    made = Pair(folder / "ca.pem", folder / "ca.key")
    extensions = ["-addext", "keyUsage=critical,keyCertSign", "-subj", "/CN=an authority for tests"]
    _openssl(
        "req", "-x509", *_EC, "-days", "30", *extensions,
        "-keyout", made.key, "-out", made.certificate,
    )  # fmt: skip
    return made


def make_server(folder: Path, authority: Pair, name: str, number: int = 1) -> Pair:
    """A certificate for 127.0.0.1 and localhost."""
    made = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    _openssl("req", "-new", *_EC, "-subj", f"/CN={name}", "-keyout", made.key, "-out", request)
    _openssl(
        "x509", "-req", "-in", request, "-days", "30", "-set_serial", str(number),
        "-CA", authority.certificate, "-CAkey", authority.key, "-extfile", extensions,
        "-out", made.certificate,
    )  # fmt: skip
    return made


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
