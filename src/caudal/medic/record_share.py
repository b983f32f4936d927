"""Which records of its host a medic puts into one heartbeat: a packet has bounded room.

A host may run more processes than fit. Those that are gone or stopped come first, since somebody
waits for that news; the others take turns.
"""

from collections.abc import Sequence

from caudal.process.pulse import HostRecord

MOST = 72  # records in a heartbeat, some 160 bytes each (PACKET_MOST in process/heart.py)


def records_of_beat(records: Sequence[HostRecord], number: int) -> list[HostRecord]:
    """Return the records for the heartbeat of that number."""
    urgent = _turn([one for one in records if one.gone or one.stopped], number, MOST)
    usual = [one for one in records if not (one.gone or one.stopped)]
    return urgent + _turn(usual, number, MOST - len(urgent))


def _turn(records: list[HostRecord], number: int, most: int) -> list[HostRecord]:
    """Return so many records, others with each number."""
    if len(records) <= most:
        return records
    first = number * most % len(records)
    return (records + records)[first : first + most]
