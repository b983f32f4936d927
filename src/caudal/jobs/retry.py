"""The one retry policy of clients: ask again until a gateway answers, within bounds.

Rules
1. Every request may be sent twice (jobs/service.py). A request whose answer was lost is sent again.
2. A round asks every gateway at most once. After a round without an answer comes a pause. It
   doubles from round to round up to a bound, and has jitter.
3. A busy gateway has answered: patience begins anew. The pauses go on growing: each round of a
   busy cluster sends the body of the request to every gateway.
4. When no gateway has answered for the time of patience, UnreachableError names what each of them
   did instead. If a quota is full that stays full for a while, JobError says which.
5. When all gateways give answers that cannot be believed, three rounds in a row, FormatError names
   them. The damage may lie on the way, so one round is not enough.
6. A request that no gateway takes for some seconds is told once, with the reasons, before the pause
   that makes it so long: a full disk, for example, may last, and only a person can make room.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from caudal.errors import FormatError
from caudal.jobs.interfaces import Clock, JobError, UnreachableError

WRONG_ROUNDS = 3  # rule 5
TELL_SECONDS = 3.0  # rule 6
Answer = TypeVar("Answer")


@dataclass
class Round(Generic[Answer]):
    """What came of asking the gateways once: an answer, a refusal for now, or nothing."""

    answer: Answer | None = None
    is_busy: bool = False  # a gateway has no room now, and none answered
    over_quota: str = ""  # the message of a gateway, if a quota is full that stays so for a while
    retry_after: float = 0.0  # seconds that a gateway asked for
    troubles: dict[str, str] = field(default_factory=dict)  # by address
    is_wrong: bool = False  # every gateway gave an answer that cannot be believed
    is_refused: bool = False  # every gateway answered, and none can serve the request now


def _jitter() -> float:
    return random.uniform(0.5, 1.0)


@dataclass(frozen=True)
class Retry:
    """How long and how often to ask again."""

    clock: Clock
    patience_seconds: float = 60.0
    first_pause: float = 0.1
    longest_pause: float = 3.0
    jitter: Callable[[], float] = _jitter  # a factor of pauses
    tell: Callable[[str], None] = lambda line: None  # for people

    def ask(self, take_round: Callable[[], Round[Answer]]) -> Answer:
        """Return the first answer; raise as the rules say."""
        began = since = self.clock.elapsed()
        rounds, wrong, is_told = 0, 0, False
        while True:
            turn = take_round()
            if turn.answer is not None:
                return turn.answer
            wrong = wrong + 1 if turn.is_wrong else 0
            if wrong == WRONG_ROUNDS:
                raise FormatError(told(turn.troubles))
            now = self.clock.elapsed()
            if turn.is_busy:
                since = now
            elif now - since >= self.patience_seconds:
                raise self._given_up(turn)
            if turn.troubles and not is_told and now - began + turn.retry_after >= TELL_SECONDS:
                is_told = True
                self.tell(self._reason(turn))
            self.pause(rounds, turn.retry_after)
            rounds += 1

    def pause(self, rounds: int, least: float = 0.0) -> None:
        """Wait before the next round."""
        longest = min(self.longest_pause, self.first_pause * 2 ** min(rounds, 10))
        self.clock.sleep(least + longest * self.jitter())

    def _reason(self, turn: Round[Answer]) -> str:
        if turn.is_busy:
            return f"no gateway has room for this request, trying again: {told(turn.troubles)}"
        return trying_again(turn.troubles, self.patience_seconds)

    def _given_up(self, turn: Round[Answer]) -> JobError:
        if turn.over_quota:
            return JobError(turn.over_quota)
        if not turn.is_refused:
            return no_answer(turn.troubles, self.patience_seconds)
        return UnreachableError(
            f"no gateway could serve this request for {self.patience_seconds:g} seconds "
            f"(tried {told(turn.troubles)})"
        )


def trying_again(troubles: Mapping[str, str], patience_seconds: float) -> str:
    """Return what a person is told meanwhile (rule 6)."""
    seconds = f"{patience_seconds:g} seconds"
    return f"no gateway can answer now, trying again for up to {seconds}: {told(troubles)}"


def no_answer(troubles: Mapping[str, str], patience_seconds: float) -> UnreachableError:
    """Return the error after the time of patience (rule 4)."""
    return UnreachableError(
        f"no gateway answered for {patience_seconds:g} seconds (tried {told(troubles)}): "
        "is the address right, and does the cluster run (`caudal status`)?"
    )


def told(troubles: Mapping[str, str]) -> str:
    """Return what each gateway did instead of answering; the same reason only once.

    >>> told({"http://a": "no answer in time", "http://b": "no answer in time"})
    'http://a, http://b: no answer in time'
    """
    reasons = dict.fromkeys(troubles.values())
    return "; ".join(
        f"{', '.join(one for one, why in troubles.items() if why == reason)}: {reason}"
        for reason in reasons
    )
