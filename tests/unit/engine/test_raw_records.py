"""A rejected row finds its raw record again, wherever the file is cut."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caudal.files.cleaning import Wanted
from caudal.files.pieces import pieces

CSV = (
    b'id,text\n1,sound\n2,too,many\n\n3,"two\nlines"\r\n4,"unclosed\n5,\xff\n6,"stray"quote\n7,last'
)
RECORDS = {
    2: "1,sound",
    3: "2,too,many",
    5: '3,"two\nlines"',
    7: '4,"unclosed',
    8: "5,\ufffd",
    9: '6,"stray"quote',
    10: "7,last",
}


@pytest.mark.parametrize("batch_bytes", [16, 40, 1 << 20])
def test_every_line_of_a_csv_file_finds_its_record(batch_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_bytes(CSV)
    found: dict[int, str] = {}
    for piece in pieces(path, Wanted("t", ("id", "text")), batch_bytes=batch_bytes):
        text = piece.read()
        sound = text.lines(np.arange(text.table.num_rows))
        lines = np.union1d(sound, text.damaged.lines)
        found |= dict(zip(lines.tolist(), text.records(lines).to_pylist(), strict=True))
    assert found == RECORDS


def test_a_row_of_a_parquet_file_is_shown_as_json(tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    pq.write_table(pa.table({"id": [1, 2, None], "text": ["a", "b", "ñ"]}), path)
    (piece,) = pieces(path, Wanted("t", ("id", "text")), batch_bytes=1 << 20)
    records = piece.read().records(np.array([1, 3])).to_pylist()
    assert records == ['{"id": "1", "text": "a"}', '{"id": null, "text": "ñ"}']
