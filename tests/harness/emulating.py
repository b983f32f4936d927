"""Code for aarch64, run on any machine: an emulated processor that sees this process's memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import unicorn
from unicorn import arm64_const as arm

from caudal.kernels import ahead

_PAGE = 4096
_END = 0x1000  # where a kernel returns to; a process has nothing as low as this
_STACK, _STACK_BYTES = 0x2000, 1 << 15
_REGISTERS = [getattr(arm, f"UC_ARM64_REG_X{number}") for number in range(8)]


class Processor:
    """Runs functions of a file of code. Memory is mapped page by page, as it is touched."""

    def __init__(self, path: Path) -> None:
        self._emulator = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self._base = ahead.mapped(path).ctypes.data
        self._emulator.mem_map(_STACK, _STACK_BYTES)
        self._emulator.hook_add(
            unicorn.UC_HOOK_MEM_UNMAPPED | unicorn.UC_HOOK_MEM_FETCH_UNMAPPED, self._map
        )

    def _map(self, emulator: Any, kind: int, address: int, *_: Any) -> bool:
        del kind
        if address < _STACK:
            return False
        page = address & -_PAGE
        emulator.mem_map_ptr(page, _PAGE, unicorn.UC_PROT_ALL, page)
        return True

    def function(self, offset: int) -> Callable[..., int]:
        """A function that begins here; its arguments are numbers of 64 bits."""

        def call(*numbers: int) -> int:
            emulator = self._emulator
            for register, number in zip(_REGISTERS, numbers, strict=False):
                emulator.reg_write(register, number & (2**64 - 1))
            more = b"".join((one & (2**64 - 1)).to_bytes(8, "little") for one in numbers[8:])
            top = _STACK + _STACK_BYTES - (len(more) + 15) // 16 * 16 - 256
            emulator.mem_write(top, more or b"\0")
            emulator.reg_write(arm.UC_ARM64_REG_SP, top)
            emulator.reg_write(arm.UC_ARM64_REG_LR, _END)
            emulator.emu_start(self._base + offset, _END)
            return int(emulator.reg_read(arm.UC_ARM64_REG_W0))

        return call


def emulate(path: Path) -> None:
    """Let every kernel of this process run on an emulated processor."""
    processor = Processor(path)

    def load(kernel: Any, count: int) -> Callable[..., int]:
        del count
        kernel._function = processor.function(kernel._code.kernels[kernel._name])
        return kernel._function  # type: ignore[no-any-return]

    ahead.Kernel._load = load  # type: ignore[assignment, method-assign]
