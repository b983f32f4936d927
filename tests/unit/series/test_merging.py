"""Merging: for every key its newest version, in whatever order the parts come."""

import random
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from caudal.series import rows
from caudal.series.merging import merge, split

EVENTS = st.lists(
    st.tuples(st.sampled_from(["A", "B", "a", "Á", "A.B"]), st.integers(0, 6), st.integers(1, 9)),
    unique=True,
    max_size=60,
)


def table(events: list[tuple[str, int, int]]) -> pa.Table:
    start = datetime(2024, 1, 1, 3, tzinfo=UTC)
    return pa.Table.from_pylist(
        [
            {
                **dict.fromkeys(["dataset_id", "provider", "frequency", "unit"], "x"),
                "source_kind": "csv",
                "obs_time": start + timedelta(days=day),
                "obs_date": date(2024, 1, 1) + timedelta(days=day),
                "value": float(day * 100 + version),
                "internal_series_code": code,
                "version": version,
                "vintage_date": date(2024, 2, 1),
                "quality_flag": "ok",
            }
            for code, day, version in events
        ],
        schema=rows.SCHEMA,
    )


@given(EVENTS, st.integers(1, 4), st.randoms(use_true_random=False))
def test_merge_agrees_with_a_dictionary(
    events: list[tuple[str, int, int]], parts: int, dice: random.Random
) -> None:
    newest: dict[tuple[bytes, int], int] = {}
    for code, day, version in events:
        key = code.encode(), day
        newest[key] = max(version, newest.get(key, 0))
    dice.shuffle(events)
    merged = merge([table(events[n::parts]) for n in range(parts)])
    found = [
        (code.encode(), time.day - 1, version)
        for code, time, version in zip(
            merged.column("internal_series_code").to_pylist(),
            merged.column("obs_time").to_pylist(),
            merged.column("version").to_pylist(),
            strict=True,
        )
    ]
    assert found == [(code, day, version) for (code, day), version in sorted(newest.items())]
    codes = [code for code, _ in split(merged)]
    assert codes == sorted({code for code, _, _ in events}, key=str.encode)
    assert sum(part.num_rows for _, part in split(merged)) == merged.num_rows


def test_the_same_rows_give_the_same_bytes_whatever_their_history() -> None:
    events = [("A", day, version) for day in range(20) for version in (1, 2, 3)]
    one = merge([table(events)])
    other = merge([table(events[n::7]) for n in range(7)])
    assert rows.encode(one) == rows.encode(other)
    assert rows.decode(rows.encode(one), "x") == one


def test_nothing_merges_to_nothing() -> None:
    assert merge([]).num_rows == 0
    assert list(split(merge([]))) == []
