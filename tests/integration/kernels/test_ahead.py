"""Kernels compiled ahead: the bits that numba gives, and no code that is stale or damaged."""

import ctypes
import importlib.util
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from caudal.kernels import ahead, bytescan, compiled, objects
from caudal.kernels.building import build, is_built
from caudal.kernels.declaring import Array, Parts, filled, flat
from caudal.kernels.objects import Target, fitting_code, fitting_target

ROOT = Path(__file__).parents[3]
AHEAD = pytest.mark.skipif(
    fitting_target(platform.machine(), objects._processor_flags()) is None,
    reason="no kernels are compiled ahead for this processor",
)


def run(form: str, **environment: str) -> dict[str, Any]:
    """What every kernel gives in a process that uses one form of them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.every_kernel", form],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["form"] == form
    assert found["uncalled"] == []
    return found


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    if not is_built():
        build()


@pytest.fixture(scope="module")
def by_numba() -> dict[str, Any]:
    return run("numba")


@pytest.mark.long
@pytest.mark.parametrize("target", objects.TARGETS, ids=lambda one: one.name)
def test_both_forms_give_the_same_bits(target: Target, by_numba: dict[str, Any]) -> None:
    here = fitting_target(platform.machine(), objects._processor_flags())
    native = target.machine == platform.machine() and here and target.flags <= here.flags
    if not native and (target.machine != "aarch64" or importlib.util.find_spec("unicorn") is None):
        pytest.skip(f"code for {target.name} does not run here")
    assert run(target.name)["given"] == by_numba["given"]


@AHEAD
def test_kernels_of_a_process_are_those_compiled_ahead() -> None:
    """Without numba, which takes longer to load than most runs take."""
    script = (
        "import sys; import caudal.kernels.csv, caudal.kernels.sentiment, caudal.kernels.hashing; "
        "from caudal.kernels.csv.records import has_quote; import numpy; "
        "assert has_quote(numpy.frombuffer(b'a\"', 'u1')); "
        "print({'numba', 'llvmlite'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


@AHEAD
def test_other_threads_run_during_a_call() -> None:
    bytescan.holds_byte(np.zeros(3, np.uint8), np.uint8(7))
    function = bytescan.holds_byte._function
    keeps_the_lock = 4  # FUNCFLAG_PYTHONAPI
    assert not function._flags_ & keeps_the_lock
    assert isinstance(function, ctypes._CFuncPtr)  # type: ignore[attr-defined]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the code and of what is known of it."""
    for path in objects.FOLDER.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@AHEAD
def test_code_of_these_sources_is_taken(folder: Path) -> None:
    code = fitting_code(folder)
    assert code is not None
    assert compiled.CODE is not None
    assert code.kernels == compiled.CODE.kernels


def test_code_of_other_sources_is_not_taken(folder: Path) -> None:
    manifest = objects.read_manifest(folder)
    (folder / objects.MANIFEST).write_text(json.dumps({**manifest, "sources": "0" * 64}))
    assert fitting_code(folder) is None


def test_damaged_code_is_not_taken(folder: Path) -> None:
    for path in folder.glob("*.code"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    assert fitting_code(folder) is None


@pytest.mark.parametrize("text", ["", "[]", "{", "{}"])
def test_a_manifest_that_says_nothing_is_none(folder: Path, text: str) -> None:
    (folder / objects.MANIFEST).write_text(text)
    assert fitting_code(folder) is None


def test_missing_code_is_not_taken(folder: Path) -> None:
    for path in folder.glob("*.code"):
        path.unlink()
    assert fitting_code(folder) is None


def test_the_richest_target_that_fits_is_taken() -> None:
    v3, v2, arm = objects.TARGETS
    assert fitting_target("x86_64", v3.flags | {"avx512f"}) == v3
    assert fitting_target("x86_64", v3.flags - {"bmi2"}) == v2
    assert fitting_target("x86_64", {"sse2"}) is None
    assert fitting_target("aarch64", ()) == arm
    assert fitting_target("riscv64", v3.flags) is None


def test_arrays_are_held_against_what_was_declared() -> None:
    numbers = np.arange(10, dtype=np.int64)
    read, written = Array("i8"), filled("i8")
    kept: list[Any] = []
    assert flat(read, numbers, kept) == [numbers.ctypes.data, 10]
    address, length = flat(read, numbers[::2], kept)
    assert length == 5
    assert kept[-1].tolist() == [0, 2, 4, 6, 8]
    assert address == kept[-1].ctypes.data
    frozen = numbers.copy()
    frozen.flags.writeable = False
    flat(read, frozen, kept)
    for wrong in (numbers[::2], frozen, numbers.astype(np.int32), numbers.reshape(2, 5)):
        with pytest.raises(ValueError, match="a kernel"):
            flat(written, wrong, kept)
    unaligned = np.frombuffer(bytes(17), np.uint8)[1:].view(np.int64)
    flat(read, unaligned, kept)
    assert kept[-1].flags.aligned
    with pytest.raises(ValueError, match="another tuple"):
        flat(Parts(tuple, (read, read)), (numbers,), kept)


def test_without_a_place_to_write_numba_compiles_and_says_so(tmp_path: Path) -> None:
    """As where site-packages are read-only and nobody has a home."""
    (tmp_path / "file").write_text("")
    script = (
        "import numpy; from caudal.kernels.hashing.xxh64 import hash_words; "
        "print(hash_words(numpy.zeros(1, 'u8'), numpy.ones(1, '?'), 2)[0])"
    )
    environment = {**os.environ, "CAUDAL_KERNELS": "numba"}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "file")
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == xxhash.xxh64_intdigest(bytes(8), 2)
    told = done.stderr.splitlines()
    assert told[0] == "caudal: compiling _fill_from_words for this processor ..."
    assert told[1].startswith("caudal: compiled _fill_from_words: ")


def test_code_that_may_not_be_run_is_left_alone(tmp_path: Path) -> None:
    missing = objects.Code(tmp_path / "missing", {})
    assert ahead.runnable(missing) is None
    assert ahead.runnable(None) is None
