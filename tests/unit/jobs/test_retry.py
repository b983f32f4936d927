"""The retry policy of clients: rounds, pauses, patience."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from caudal.errors import FormatError
from caudal.jobs.interfaces import JobError, UnreachableError
from caudal.jobs.retry import WRONG_ROUNDS, Retry, Round


@dataclass
class Clock:
    """Time passes only in sleeps, which are kept."""

    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.elapsed()

    def elapsed(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def rounds(*given: Round[str]) -> Callable[[], Round[str]]:
    left = list(given)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def clock() -> Clock:
    return Clock()


def policy(clock: Clock) -> Retry:
    return Retry(clock, 10.0, jitter=lambda: 1.0)


SILENT: Round[str] = Round(troubles={"http://a": "no answer in time"})


def test_the_first_answer_ends_it(clock: Clock) -> None:
    assert policy(clock).ask(rounds(SILENT, SILENT, Round("yes"))) == "yes"
    assert clock.slept == [0.1, 0.2]


def test_pauses_double_up_to_a_bound_and_patience_ends(clock: Clock) -> None:
    with pytest.raises(UnreachableError, match=r"10 seconds \(tried http://a: no answer in time\)"):
        policy(clock).ask(rounds(SILENT))
    assert clock.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0, 3.0]


def test_gateways_that_all_refuse_have_answered(clock: Clock) -> None:
    full = dict.fromkeys(("http://a", "http://b"), "answered 503: the store is full")
    why = r"no gateway could serve this request .* \(tried http://a, http://b: answered 503: the st"
    with pytest.raises(UnreachableError, match=why):
        policy(clock).ask(rounds(Round(troubles=full, is_refused=True)))


def test_one_that_waits_for_long_is_told_why_once(clock: Clock) -> None:
    lines: list[str] = []
    waiting = Retry(clock, 60.0, jitter=lambda: 1.0, tell=lines.append)
    assert waiting.ask(rounds(*[SILENT] * 5, Round("yes"))) == "yes"
    assert lines == []  # a few seconds are nothing
    assert waiting.ask(rounds(*[SILENT] * 12, Round("yes"))) == "yes"
    (told,) = lines
    assert told.startswith("no gateway can answer now, trying again for up to 60 seconds: http://a")


def test_a_busy_gateway_is_asked_for_as_long_as_it_is_busy(clock: Clock) -> None:
    busy: Round[str] = Round(is_busy=True, retry_after=5.0)
    assert policy(clock).ask(rounds(*[busy] * 20, Round("yes"))) == "yes"
    assert clock.slept == [5.1, 5.2, 5.4, 5.8, 6.6, *[8.0] * 15], "no less than it asked for"


def test_one_that_waits_for_room_is_told_why_once(clock: Clock) -> None:
    lines: list[str] = []
    waiting = Retry(clock, 10.0, jitter=lambda: 1.0, tell=lines.append)
    troubles = {"http://a": "too many uploads", "http://b": "no answer in time"}
    short = [Round[str](is_busy=True, retry_after=1.0, troubles=troubles)] * 2
    assert waiting.ask(rounds(*short, Round("yes"))) == "yes"
    assert lines == []  # a moment is nothing
    assert waiting.ask(rounds(*short * 10, Round("yes"))) == "yes"
    (told,) = lines
    assert told == (
        "no gateway has room for this request, trying again: "
        "http://a: too many uploads; http://b: no answer in time"
    )


def test_who_must_wait_for_long_is_told_before(clock: Clock) -> None:
    told: list[float] = []
    waiting = Retry(clock, 60.0, tell=lambda line: told.append(clock.elapsed()))
    busy = Round[str](is_busy=True, retry_after=20.0, troubles={"http://a": "took too much"})
    assert waiting.ask(rounds(busy, Round("yes"))) == "yes"
    assert told == [0.0]


def test_a_quota_that_stays_full_is_named_after_the_time_of_patience(clock: Clock) -> None:
    with pytest.raises(JobError, match="your quota of jobs is full"):
        policy(clock).ask(rounds(Round(over_quota="your quota of jobs is full")))
    assert clock.elapsed() >= 10.0


def test_wrong_answers_end_it_only_in_a_row(clock: Clock) -> None:
    wrong: Round[str] = Round(is_wrong=True, troubles={"http://a": "lies"})
    assert policy(clock).ask(rounds(wrong, wrong, SILENT, wrong, wrong, Round("yes"))) == "yes"
    with pytest.raises(FormatError, match="http://a: lies"):
        policy(clock).ask(rounds(*[wrong] * WRONG_ROUNDS))
