"""Compiles the kernels ahead of time for every target: `python -m caudal.kernels.building`.

Numba compiles each kernel to LLVM's intermediate code, without optimization. That code is the same
for all targets. Each kernel gets a wrapper with C's calling convention (`c_functions.py`). All of
it is joined, optimized for each target, and written as a file of code that can be mapped at any
address (`linking.py`). This needs neither a C compiler nor a linker, and any machine can build for
all targets.

The code calls nothing outside of itself: no numba runtime, no Python, no C library. Linking refuses
code that does.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from importlib.metadata import version
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

from llvmlite import binding

from caudal.kernels import objects
from caudal.kernels.linking import link
from caudal.kernels.objects import FOLDER, TARGETS, Target
from caudal.kernels.sources import digest_of_sources

MODULES = (
    "caudal.kernels.sentiment.kernel",
    "caudal.kernels.csv.records",
    "caudal.kernels.literals.extract",
    "caudal.kernels.csv.columns",
    "caudal.kernels.csv.numbers",
    "caudal.kernels.hashing.xxh64",
    "caudal.kernels.hashing.filters",
    "caudal.kernels.bytescan",
    "caudal.kernels.spans",
)  # the slowest first
_ENVIRONMENT = {"CAUDAL_KERNELS": "build", "NUMBA_OPT": "0"}


def build(folder: Path = FOLDER, say: Callable[[str], None] = lambda line: None) -> None:
    """Build the objects of all targets, with one process per processor."""
    began, steps = perf_counter(), count(1)

    def tell() -> None:
        told = f"{next(steps)} of {len(MODULES) + len(TARGETS)} steps"
        say(f"compiling kernels: {told}, {perf_counter() - began:.0f} s")

    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(_ENVIRONMENT)  # for the children, which compile
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=get_context("spawn")) as pool:
        codes = []
        for code in _finished(pool.submit(intermediate, one) for one in MODULES):
            codes += code
            tell()
        kernels = {}
        for name, places in _finished(
            pool.submit(write_code, codes, one, folder) for one in TARGETS
        ):
            kernels[name] = places
            tell()
    made_by = {name: version(name) for name in ("numba", "llvmlite")}
    objects.write_manifest(folder, made_by, kernels)


def is_built(folder: Path = FOLDER) -> bool:
    """Return whether the objects of these sources exist."""
    there = all(objects.code_path(folder, one).exists() for one in TARGETS)
    return there and objects.read_manifest(folder).get("sources") == digest_of_sources()


def _finished(futures: Iterable[Future[Any]]) -> Iterable[Any]:
    return (future.result() for future in as_completed(list(futures)))


def intermediate(module: str) -> list[str]:
    """Return the intermediate code of a module's kernels. Call it in a child process."""
    from caudal.kernels import c_functions, compiled

    importlib.import_module(module)
    return [
        c_functions.with_c_function(name, *kernel)
        for name, kernel in compiled.listed.kernels.items()
        if name.startswith(f"{module}.")
    ]


def write_code(codes: Iterable[str], target: Target, folder: Path) -> tuple[str, dict[str, int]]:
    """Optimize intermediate code for a target and write its file. Return the target's name, and
    where in the file each kernel begins."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, opt=3, reloc="pic", codemodel="small"
    )
    whole = _linked(codes, target, str(machine.target_data))
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = True
    options.loop_unrolling = True
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(whole, builder)
    linked = link(machine.emit_object(whole))
    objects.code_path(folder, target).write_bytes(linked.code)
    return target.name, linked.functions


def _linked(codes: Iterable[str], target: Target, layout: str) -> binding.ModuleRef:
    whole = binding.parse_assembly("")
    whole.triple, whole.data_layout = target.triple, layout
    for code in codes:
        one = binding.parse_assembly(code)
        one.triple, one.data_layout = target.triple, layout
        one.verify()
        for part in (*one.functions, *one.global_variables):
            if not part.is_declaration and not part.name.startswith("caudal."):
                part.linkage = "internal"
        whole.link_in(one)
    return whole


def main() -> None:
    if is_built():
        return
    in_place = sys.stderr.isatty()
    build(say=_say_in_place if in_place else _say)
    if in_place:
        print(file=sys.stderr)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _say_in_place(line: str) -> None:
    print(f"\r{line}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
