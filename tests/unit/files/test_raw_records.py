"""The records of rejected rows are those of the file, whatever lies between them."""

import io
import random

import numpy as np
import pytest

from caudal.files.raw_records import records_of_batch
from caudal.kernels.csv import cut_batches, read_batch

_RECORDS = ["1,2", "1", "1,2,3", '"x\ny",2', '"x\n\n\n",","', "z" * 9_000 + ",1", "ñ,1", '"",""']


@pytest.mark.parametrize("seed", range(20))
def test_records_are_found_by_their_lines(seed: int) -> None:
    chance = random.Random(seed)
    records = chance.choices(_RECORDS, k=chance.randint(1, 300))
    text = "\n".join(["a,b", *records]) + chance.choice(["", "\n"])
    lines = np.cumsum([2, *(one.count("\n") + 1 for one in records)])[:-1]
    wanted = {
        int(line): one for line, one in zip(lines, records, strict=True) if chance.random() < 0.2
    }
    found: dict[int, str] = {}
    size = chance.choice([5_000, 60_000, 1 << 20])
    for batch in cut_batches(io.BytesIO(text.encode()), "x", batch_bytes=size, wanted=("a", "b")):
        read = read_batch(batch, ("a", "b"), (), ())
        begins = np.union1d(batch.lines(read.starts), read.damaged.lines)
        here = np.array([line for line in begins if int(line) in wanted], np.int64)
        texts = records_of_batch(batch, read.starts, read.damaged.lines, here).to_pylist()
        found.update(zip(here.tolist(), texts, strict=True))
    assert found == wanted
