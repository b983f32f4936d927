"""Object files of LLVM become code that needs nothing but its place; all else is refused."""

import ctypes
import mmap
import platform

import numpy as np
import pytest
from llvmlite import binding

from caudal.kernels.linking import link
from caudal.kernels.objects import TARGETS, Target

TABLE = """
@table = internal constant [4 x i64] [i64 11, i64 22, i64 33, i64 44]
define internal i64 @inner(i64 %k) noinline nounwind {
  %at = getelementptr [4 x i64], ptr @table, i64 0, i64 %k
  %value = load i64, ptr %at
  ret i64 %value
}
define i64 @outer(i64 %k) nounwind {
  %value = call i64 @inner(i64 %k)
  %more = add i64 %value, 1
  ret i64 %more
}
"""
OUTSIDE = (
    "declare i64 @elsewhere()\ndefine i64 @f() nounwind { %v = call i64 @elsewhere()\n ret i64 %v }"
)
WRITTEN = (
    "@kept = global i64 7\n"
    "define i64 @f() nounwind { %v = load i64, ptr @kept\n store i64 8, ptr @kept\n ret i64 %v }"
)
ADDRESS = "@a = constant i64 7\n@b = constant ptr @a\ndefine ptr @f() nounwind { ret ptr @b }"


def object_file(code: str, target: Target) -> bytes:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, opt=2, reloc="pic", codemodel="small"
    )
    module = binding.parse_assembly(code)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    made: bytes = machine.emit_object(module)
    return made


@pytest.mark.skipif(platform.machine() != "x86_64", reason="runs code of x86-64")
def test_linked_code_finds_its_constants_and_functions() -> None:
    linked = link(object_file(TABLE, TARGETS[1]))
    assert set(linked.functions) == {"outer"}
    block = mmap.mmap(-1, len(linked.code), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    block.write(linked.code)
    base = np.frombuffer(block, np.uint8).ctypes.data
    outer = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(base + linked.functions["outer"])
    assert [outer(k) for k in range(4)] == [12, 23, 34, 45]


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: one.name)
@pytest.mark.parametrize("code", [OUTSIDE, WRITTEN, ADDRESS])
def test_what_needs_more_than_a_place_is_refused(code: str, target: Target) -> None:
    with pytest.raises(ValueError, match=r"object file|relocation"):
        link(object_file(code, target))


def test_what_is_no_object_file_is_refused() -> None:
    with pytest.raises(ValueError, match="no object file"):
        link(b"MZ" + bytes(100))
