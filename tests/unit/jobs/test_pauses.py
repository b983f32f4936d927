"""How long a client waits between two looks at its job."""

from itertools import islice

from tests.harness.hand_clock import HandClock

from caudal.jobs.upload import Uploader


def pauses(client: Uploader) -> list[float]:
    return list(islice(client.pauses(), 8))


def test_a_client_in_a_hurry_looks_soon_at_first() -> None:
    client = Uploader(None, HandClock(), 0.25, first_pause_seconds=0.02)  # type: ignore[arg-type]
    found = pauses(client)
    assert found[0] == 0.02
    assert found == sorted(found)
    assert found[-1] == 0.25


def test_others_look_evenly() -> None:
    assert pauses(Uploader(None, HandClock(), 0.5)) == [0.5] * 8  # type: ignore[arg-type]
