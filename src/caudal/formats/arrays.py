"""Checks that an Arrow array stays within its own buffers.

Offsets and lengths of an array may be forged, so they must be compared with the buffers. Arrow's
own full check (`validate(full=True)`) is not suitable: it refuses values that SQL has and Arrow
has not, such as the time 24:00:00 or an integer of 39 digits, and it checks texts one by one. So
this module uses Arrow's quick check of buffer sizes for every array, and then checks the rest
depending on the type.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

INLINE_BYTES = 12  # a text of at most so many bytes is stored inside its view
_CONTINUES = 0xC0, 0x80  # mask and value of a UTF-8 byte that does not begin a character


def check(array: pa.Array) -> None:
    """Raise ArrowInvalid if any offset or index, at any depth, lies outside of its buffer."""
    kind, types = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        check(array.storage)
        return
    check_sizes(array)
    if is_bytes(kind):
        check_views(array)
        if not _is_sound_text(array):
            array.validate(full=True)
    elif types.is_union(kind):
        array.validate(full=True)
    elif types.is_dictionary(kind):
        check(array.dictionary)
        _check_indices(array)
    elif is_list(kind):
        _check_list(array)
    elif types.is_struct(kind):
        for number in range(kind.num_fields):
            check(array.field(number))


def check_sizes(array: pa.Array) -> None:
    """Raise ArrowInvalid if a buffer is too short, or if the number of nulls is wrong.

    No values are read. The number of nulls matters because other code allocates memory by it.
    """
    array.validate()
    if pa.types.is_null(array.type) or pa.types.is_union(array.type):
        return
    bitmap = None if isinstance(array, pa.ExtensionArray) else array.buffers()[0]
    if bitmap is not None and array.null_count != _count_nulls(bitmap, array.offset, len(array)):
        raise pa.ArrowInvalid("the number of nulls is not that of the bitmap")


def check_views(array: pa.Array) -> None:
    """Raise ArrowInvalid if a view points outside of the buffer that it names.

    A view consists of a length, four bytes of text, the number of a buffer and an offset in it.
    Views of nulls are checked too: Arrow's own full check skips them, but its casts read them.
    """
    is_view = pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type)
    if not is_view or not len(array):
        return
    _, views, *buffers = array.buffers()
    sizes = np.array([0 if one is None else one.size for one in buffers] or [0], np.int64)
    words = np.frombuffer(views, "<u4", 4 * len(array), 16 * array.offset).reshape(-1, 4)
    long = words[words[:, 0] > INLINE_BYTES]
    lengths, numbers, places = (long[:, column].astype(np.int64) for column in (0, 2, 3))
    if np.any(numbers >= len(sizes)) or np.any(places + lengths > sizes[numbers]):
        raise pa.ArrowInvalid("a view lies outside of its data")


def _count_nulls(bitmap: pa.Buffer, offset: int, count: int) -> int:
    data = np.frombuffer(bitmap, np.uint8, (offset + count + 7) // 8)
    bits = np.unpackbits(data[offset // 8 :], bitorder="little")[offset % 8 :][:count]
    return count - int(np.count_nonzero(bits))


def _is_sound_text(array: pa.Array) -> bool:
    """Return whether these are texts (or bytes) that are certainly valid.

    That means: all offsets lie within the data, the whole data is UTF-8, and no text begins inside
    a character. If not, Arrow's full check decides.
    """
    kind, types = array.type, pa.types
    large = types.is_large_string(kind) or types.is_large_binary(kind)
    if not (large or types.is_string(kind) or types.is_binary(kind)) or not len(array):
        return False
    _, offsets, data = array.buffers()
    width = np.dtype(np.int64 if large else np.int32)
    places = np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize)
    held = np.frombuffer(data if data is not None else b"", np.uint8)
    if places[0] < 0 or places[-1] > len(held) or np.any(places[1:] < places[:-1]):
        return False
    is_text = types.is_string(kind) or types.is_large_string(kind)
    return not is_text or _is_utf8(held[places[0] : places[-1]], places[:-1] - places[0])


def _is_utf8(data: NDArray[np.uint8], starts: NDArray[np.signedinteger]) -> bool:
    """Check all texts at once, which is ten times as fast as one by one."""
    mask, value = _CONTINUES
    if np.any(data[starts[starts < len(data)]] & mask == value):
        return False
    ends = pa.py_buffer(np.array([0, len(data)], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _check_indices(array: pa.DictionaryArray) -> None:
    import pyarrow.compute as pc

    ends = pc.min_max(array.indices)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    if least is not None and not 0 <= least <= most < len(array.dictionary):
        raise pa.ArrowInvalid("an index lies outside of its dictionary")


def _check_list(array: pa.Array) -> None:
    if not pa.types.is_fixed_size_list(array.type) and len(array):
        offsets = array.offsets.to_numpy()
        ends = offsets[0] < 0 or offsets[-1] > len(array.values)
        if ends or np.any(offsets[1:] < offsets[:-1]):
            raise pa.ArrowInvalid("a list lies outside of its values")
    check(array.values)


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether the type is text or binary, of any length and layout."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    """Return whether the type is a list whose values follow each other, or a map."""
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_map(kind)
    )
