"""A heartbeat has room for the records of a large host, in turns."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from caudal.medic.record_share import MOST, records_of_beat
from caudal.process.heart import PACKET_MOST, Heartbeat
from caudal.process.pulse import HostRecord, Pulse


def records(count: int, ill: int = 0) -> list[HostRecord]:
    return [HostRecord(f"worker-{n}", 9, 1.5, gone=n < ill) for n in range(count)]


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 10_000))
def test_all_records_come_in_turns(well: int, ill: int, since: int) -> None:
    every = records(well + ill, ill)
    beats = [records_of_beat(every, since + n) for n in range(1 + (well + ill) // MOST)]
    assert all(len(one) == len(set(one)) <= MOST for one in beats)
    if ill < MOST:
        turns = range(1 + well // (MOST - ill))
        assert {o for n in turns for o in records_of_beat(every, since + n)} == set(every)
    else:
        assert set(every[:ill]) == {o for one in beats for o in one}


def test_news_comes_in_every_heartbeat() -> None:
    every = records(999, ill=3)
    assert all(set(every[:3]) <= set(records_of_beat(every, n)) for n in range(99))


def test_a_heartbeat_of_a_large_host_fits_into_its_packet() -> None:
    name = f"worker-999.{'h' * 31}"
    longest = HostRecord(name, 10**9, 12345678.123456789, gone=False, first=10**9, stopped_for=1e6)
    pulse = Pulse(
        name, 10**9, 10**9, 10**7, 10**9, 10**9, 10**12, "electing 1000000", True, "9" * 30
    )
    settings = {f"setting-{n:02}": "0" * 32 for n in range(40)}
    beat = Heartbeat("0" * 16, pulse, [longest] * MOST, [pulse] * 3, "0" * 32, settings)
    assert len(msgspec.json.encode(beat)) + 100 < PACKET_MOST
