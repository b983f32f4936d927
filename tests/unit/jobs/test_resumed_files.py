"""What a client that resumes sends, and when: a batch of each file first, to be compared."""

import pytest

from caudal.formats.batch import BatchHeader
from caudal.jobs.resumed_files import IN_TRANSIT, ResumedFiles


def batch(number: int, file: str = "a.csv") -> BatchHeader:
    return BatchHeader("t", number, file, ("x",), 2, 0, 1, 2, f"digest {number}")


def missing(files: ResumedFiles[int], *numbers: int, file: str = "a.csv") -> list[int]:
    return [one for number in numbers for one in files.missing(batch(number, file), number)]


def test_one_batch_of_each_file_is_compared() -> None:
    files = ResumedFiles[int]()
    assert files.must_compare(batch(0))
    assert not files.must_compare(batch(1)), "that one is on its way"
    assert missing(files, 5) == [], "and this one waits for it"
    assert files.compared(batch(0)) == [5]
    assert not files.must_compare(batch(2))
    assert missing(files, 6) == [6], "at once"
    assert files.must_compare(batch(3, "b.csv"))


def test_what_is_missing_waits_until_its_file_was_compared() -> None:
    files = ResumedFiles[int]()
    assert missing(files, 0, 2) == []
    assert missing(files, 3, file="b.csv") == []
    assert files.compared(batch(1)) == [0, 2]
    assert files.rest() == [3]
    assert files.rest() == []


@pytest.mark.parametrize("order", [(7, 8, 9, 10), (10, 8, 9, 7), (8, 7, 10, 9)])
def test_behind_a_window_of_missing_ones_nothing_has_arrived(order: tuple[int, ...]) -> None:
    assert len(order) == IN_TRANSIT
    files = ResumedFiles[int]()
    files.compared(batch(0))
    assert missing(files, *order[:-1], file="b.csv") == []
    assert sorted(missing(files, order[-1], file="c.csv")) == sorted(order)
    assert missing(files, 11, file="d.csv") == [11]
    assert files.rest() == []


def test_gaps_are_no_window() -> None:
    files = ResumedFiles[int]()
    assert missing(files, 0, 1, 2, 4, 5, 6) == []
    assert files.rest() == [0, 1, 2, 4, 5, 6]


def test_nothing_overtakes_what_waited_and_is_sent_now() -> None:
    """Else a client that is killed meanwhile leaves a window of missing ones before others."""
    files = ResumedFiles[int]()
    assert missing(files, 2, 1, 3) == []
    sending = iter(files.missing(batch(0), 0))
    found = [next(sending), next(sending)]
    assert missing(files, 5, 4, file="b.csv") == []
    found += sending
    assert found == [0, 1, 2, 3, 4, 5]
    assert missing(files, 6) == [6]
