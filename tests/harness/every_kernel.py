"""Runs every kernel over seeded inputs and prints a digest of all that it gave, as JSON.

`python -m tests.harness.every_kernel FORM`, where the form is `numba` or a target's name.
"""

import gc
import hashlib
import json
import os
import platform
import random
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from caudal.kernels import objects


def choose(form: str) -> None:
    """Let this process use kernels of one form. To be called before any kernel is imported."""
    if form == "numba":
        os.environ["CAUDAL_KERNELS"] = form
        return
    (target,) = (one for one in objects.TARGETS if one.name == form)
    objects._processor_flags = lambda: target.flags
    if target.machine != platform.machine():
        from tests.harness.emulating import emulate

        platform.machine = lambda: target.machine
        emulate(objects.code_path(objects.FOLDER, target))


def csv_texts(dice: random.Random) -> list[bytes]:
    fields = ["", "7", "-12.5", "1234567.25", '"a ""quoted"" one"', "plain", '"two\nlines"', 'a"b']
    fields += ["0.1", "123456789012345678", "ü", '"unclosed', "x" * 90]
    texts = []
    for quotes in (False, True):
        chosen = [one for one in fields if quotes or '"' not in one]
        for width in (1, 3, 5):
            lines = [",".join(f"c{k}" for k in range(width))]
            for _ in range(400):
                count = width if dice.random() < 0.9 else dice.randint(0, 7)
                lines.append(",".join(dice.choice(chosen) for _ in range(count)))
            texts.append(dice.choice(["\n", "\r\n"]).join(lines).encode())
    return texts


def literals(dice: random.Random) -> list[str | None]:
    parts = ["'a'", '"b\\n"', "{'name': 'x', 'id': 1}", "{'id': 2.5, 'name': 'y\\u00e9'}", "None"]
    parts += ["['n']", "-1e5", "'\\x41\\101'", "True", "b'no'"]
    return [None, "", *(f"[{', '.join(dice.choices(parts, k=k % 9))}]" for k in range(600))]


def sentences(dice: random.Random) -> list[str | None]:
    words = "a very good not bad! never terrible :) :( great, film. U.S. wonderful ... (!) é“nice”"
    return [None, "", *(" ".join(dice.choices(words.split(), k=k % 60)) for k in range(600))]


def outcomes() -> dict[str, Any]:
    """What every kernel gives, by the entrance that calls it."""
    from caudal.kernels import bytescan
    from caudal.kernels import literals as python_literals
    from caudal.kernels.csv import NumberColumn, cut_batches, read_batch
    from caudal.kernels.hashing import KeyFilter, hash_rows
    from caudal.kernels.sentiment import column

    given: dict[str, Any] = {}
    dice = random.Random(7)
    texts = csv_texts(dice)
    for number, text in enumerate(texts):
        for batch in cut_batches(_Stream(text), "f", batch_bytes=1500):
            names = batch.header.names
            numbers = [NumberColumn(names[0], 0, 0), NumberColumn(names[-1], 12, 3)]
            read = read_batch(batch, names, numbers)
            given[f"csv {number} {batch.number}"] = (
                read.table.to_pydict(),
                read.starts.tolist(),
                list(read.damaged),
                [(one.values.to_pylist(), one.odd_rows.tolist()) for one in read.numbers],
            )
    data = np.frombuffer(b"".join(texts), np.uint8)
    for byte in (np.uint8(34), np.uint8(200)):
        found = bytescan.find_byte(data, 3, len(data), byte)
        either = bytescan.find_either(data, 3, len(data), byte, np.uint8(10))
        target = np.zeros(600, np.uint8)
        bytescan.copy_bytes(data, 5, 517, target, 9)
        given[f"bytes {byte}"] = found, either, bytescan.holds_byte(data, byte), target.tolist()
    words = np.array([dice.getrandbits(64) for _ in range(3000)], np.uint64)
    given["filter"] = KeyFilter(words[:900]).may_hold(words).tolist()
    columns = [
        pa.array(
            [one.decode("utf-8", "replace")[k : k + 3 * k] for one in texts for k in range(60)]
        ),
        pa.array([None if k % 7 == 0 else k * k - 900 for k in range(360)]),
        pa.array([Decimal(k) / 100 for k in range(360)], pa.decimal128(20, 4)),
        pa.array([k / 7 for k in range(360)]),
    ]
    views = columns[0].cast(pa.string_view())
    given["hash"] = hash_rows(columns).tolist(), hash_rows([views]).tolist()
    listed = pa.array(literals(dice))
    given["items"] = python_literals.items(listed).to_pylist()
    given["names"] = python_literals.names(listed).to_pylist()
    given["sentiment"] = [score.hex() for score in column.score(pa.array(sentences(dice))).tolist()]
    return given


class _Stream:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def readinto(self, buffer: Any) -> int:
        taken = self._data[: len(buffer)]
        buffer[: len(taken)] = np.frombuffer(taken, np.uint8)
        self._data = self._data[len(taken) :]
        return len(taken)


def uncalled() -> list[str]:
    """The kernels of the code in use that nobody has called."""
    from caudal.kernels import ahead, compiled

    if compiled.CODE is None:
        return []
    kernels = [one for one in gc.get_objects() if isinstance(one, ahead.Kernel)]
    called = {one._name for one in kernels if one._function is not None}
    return sorted(set(compiled.CODE.kernels) - called)


def main(form: str) -> None:
    choose(form)
    given = {
        name: hashlib.sha256(repr(value).encode()).hexdigest() for name, value in outcomes().items()
    }
    from caudal.kernels import compiled

    path = compiled.CODE.path.stem if compiled.CODE else "numba"
    print(json.dumps({"form": path, "uncalled": uncalled(), "given": given}))


if __name__ == "__main__":
    main(sys.argv[1])
