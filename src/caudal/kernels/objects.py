"""Finds the compiled kernels of this package that this processor can run.

`objects/` holds one file of code per target (`linking.py`) and `objects.json`, which names the
sources that they were made of and where each kernel begins. Rules:

1. Objects of other sources are never loaded. After an edit, numba compiles the kernels until the
   objects are built again.
2. An object whose digest does not match is never loaded.
3. Of the targets whose features the processor has, the one with most features is used.
"""

import hashlib
import json
import os
import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caudal.kernels.sources import digest_of_sources

FOLDER = Path(__file__).parent / "objects"
MANIFEST = "objects.json"
_FLAGS_BYTES = 1 << 16  # of /proc/cpuinfo, which says the same for every core


@dataclass(frozen=True)
class Target:
    """A kind of processor, with LLVM's name and its flags in /proc/cpuinfo."""

    name: str
    triple: str
    cpu: str
    machine: str
    flags: frozenset[str] = frozenset()


_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_INTEL, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"

TARGETS = (
    Target("x86-64-v3", _INTEL, "x86-64-v3", "x86_64", _V3),
    Target("x86-64-v2", _INTEL, "x86-64-v2", "x86_64", _V2),
    Target("aarch64", _ARM, "generic", "aarch64"),
)


def fitting_target(machine: str, flags: Collection[str]) -> Target | None:
    """Return the target with most features that a processor with these flags can run."""
    return next(
        (one for one in TARGETS if one.machine == machine and one.flags.issubset(flags)), None
    )


@dataclass(frozen=True)
class Code:
    """A file of code, and where in it each kernel begins."""

    path: Path
    kernels: Mapping[str, int]


def fitting_code(folder: Path = FOLDER) -> Code | None:
    """Return the code for this processor and these sources; None if there is none."""
    manifest = read_manifest(folder)
    target = fitting_target(platform.machine(), _processor_flags())
    if target is None or manifest.get("sources") != digest_of_sources():
        return None
    known, path = manifest["targets"][target.name], code_path(folder, target)
    try:
        sound = hashlib.sha256(path.read_bytes()).hexdigest() == known["sha256"]
    except OSError:
        return None
    return Code(path, known["kernels"]) if sound else None


def code_path(folder: Path, target: Target) -> Path:
    return folder / f"{target.name}.code"


def read_manifest(folder: Path = FOLDER) -> dict[str, Any]:
    """Return the manifest of the objects; empty if there is none."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def write_manifest(
    folder: Path, made_by: Mapping[str, str], kernels: Mapping[str, Mapping[str, int]]
) -> None:
    """Write the manifest of the code in a folder, atomically. This is the last step of a build."""
    targets = {
        one.name: {
            "sha256": hashlib.sha256(code_path(folder, one).read_bytes()).hexdigest(),
            "kernels": kernels[one.name],
        }
        for one in TARGETS
    }
    manifest = {"sources": digest_of_sources(), "made_by": made_by, "targets": targets}
    beside = folder / f"{MANIFEST}.{os.getpid()}"
    beside.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    beside.replace(folder / MANIFEST)


def _processor_flags() -> frozenset[str]:
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            lines = file.read(_FLAGS_BYTES).decode("ascii", "replace").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), ":")
    return frozenset(flags.partition(":")[2].split())
