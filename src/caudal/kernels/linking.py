"""Turns an object file into one block of code that can be mapped at any address.

LLVM writes the object file, for x86-64 or aarch64. It holds code and constants, no data that is
written to, and no external symbol. The sections are placed one after the other. Then the distance
between an instruction and its operand is written into the instruction. Such distances do not depend
on the address of the block. Every other kind of relocation is refused.

The names are those of ELF: a relocation says that place P needs symbol S plus A.
"""

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_PROGBITS, _SYMTAB, _RELA = 1, 2, 4
_WRITE, _ALLOCATED = 1, 2
_GLOBAL_FUNCTION = 0x12

_X86_64, _AARCH64 = 62, 183
_DISTANCES = {(_X86_64, 2), (_X86_64, 4), (_AARCH64, 261)}  # 32 bits of S + A - P
_BRANCHES = {(_AARCH64, 282), (_AARCH64, 283)}  # 26 bits of it, in instructions
_PAGES = {(_AARCH64, 275)}  # 21 bits: how many pages of 4 KiB between S + A and P
_IN_PAGE = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # S + A within its page, in such units


@dataclass(frozen=True)
class Linked:
    """Code with its constants, and where in it each function begins."""

    code: bytes
    functions: dict[str, int]


@dataclass(frozen=True)
class _Section:
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def link(data: bytes) -> Linked:
    """Place the sections of an object file and write the distances between them."""
    machine, sections = _read(data)
    places: dict[int, int] = {}
    code = bytearray()
    for number, one in enumerate(sections):
        if one.flags & _ALLOCATED:
            if one.kind != _PROGBITS or one.flags & _WRITE:
                raise ValueError("the object file holds more than code and constants")
            code += bytes(-len(code) % max(one.alignment, 1))
            places[number] = len(code)
            code += data[one.offset : one.offset + one.size]
    symtab = next(one for one in sections if one.kind == _SYMTAB)
    symbols = list(_SYMBOL.iter_unpack(data[symtab.offset : symtab.offset + symtab.size]))
    for one in sections:
        if one.kind == _RELA and one.info in places:
            for at, what, more in _RELOCATION.iter_unpack(data[one.offset : one.offset + one.size]):
                _, _, _, section, value, _ = symbols[what >> 32]
                if section not in places:
                    raise ValueError("the object file names a symbol that it does not hold")
                target = places[section] + value + more
                _settle(code, (machine, what & 0xFFFFFFFF), places[one.info] + at, target)
    return Linked(bytes(code), _functions(data, sections[symtab.link], symbols, places))


def _read(data: bytes) -> tuple[int, list[_Section]]:
    header = _HEADER.unpack_from(data)
    if header[0][:6] != b"\x7fELF\x02\x01":
        raise ValueError("this is no object file of 64 bits")
    machine, start, width, count = header[2], header[6], header[11], header[12]
    sections = []
    for number in range(count):
        _, kind, flags, _, offset, size, link_, info, alignment, _ = _SECTION.unpack_from(
            data, start + number * width
        )
        sections.append(_Section(kind, flags, offset, size, link_, info, alignment))
    return machine, sections


def _functions(
    data: bytes, names: _Section, symbols: list[tuple[int, ...]], places: dict[int, int]
) -> dict[str, int]:
    found = {}
    for name, info, _, section, value, _ in symbols:
        if info == _GLOBAL_FUNCTION and section in places:
            begin = names.offset + name
            found[data[begin : data.index(b"\0", begin)].decode()] = places[section] + value
    return found


def _settle(code: bytearray, kind: tuple[int, int], place: int, target: int) -> None:
    (word,) = struct.unpack_from("<I", code, place)
    machine, number = kind
    if kind in _DISTANCES:
        word = _signed(target - place, 32)
    elif kind in _BRANCHES:
        word |= _signed((target - place) >> 2, 26)
    elif kind in _PAGES:
        pages = _signed((target >> 12) - (place >> 12), 21)
        word |= (pages & 3) << 29 | (pages >> 2) << 5
    elif machine == _AARCH64 and number in _IN_PAGE:
        word |= ((target & 0xFFF) >> _IN_PAGE[number]) << 10
    else:
        raise ValueError(f"relocation {number} of machine {machine} is not known here")
    struct.pack_into("<I", code, place, word)


def _signed(value: int, bits: int) -> int:
    """Return a number in this many bits; raise ValueError if it needs more."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError("a distance in the object file is too large")
    return value & (1 << bits) - 1
