"""Keys to names and back."""

from caudal.series import layout
from caudal.series.layout import Month

MONTH = Month("d", 2024, 3)


def test_keys_and_back() -> None:
    assert layout.projection(MONTH, "S") == (
        "datasets/d/projections/windows/S/year=2024/month=03/data.parquet"
    )
    final = layout.parse_projection("d", layout.projection(MONTH, "S.x"))
    assert final == layout.ProjectionKey(MONTH, "S.x", "")
    temp = layout.parse_projection("d", layout.projection_temp(MONTH, "S", "attempt"))
    assert temp == layout.ProjectionKey(MONTH, "S", "attempt")
    assert layout.parse_manifest("d", layout.manifest(MONTH, 12)) == (MONTH, 12)
    assert layout.parse_part(layout.part(MONTH, 7, "a")) == layout.PartKey(7, "a")
    assert layout.is_version(layout.version_folder("d", 7).split("/")[-2])
    assert not layout.is_version("00000000")
    assert Month.parse("d", str(MONTH)) == MONTH


def test_what_is_not_ours_is_left_alone() -> None:
    assert layout.parse_projection("d", "datasets/d/projections/windows/S/notes.txt") is None
    assert layout.parse_manifest("d", layout.manifest_copy(MONTH)) is None
    assert layout.parse_part(layout.version_manifest("d", 7)) is None
