"""Who must wait after plans that exceeded their limits, and how long."""

from caudal.gateway.plan_waits import FIRST_SECONDS, FORGET_SECONDS, MOST_SECONDS, PlanWaits


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def wait_of(waits: PlanWaits, owner: str) -> int:
    refusal = waits.refusal(owner)
    return int((refusal.headers or {})["retry-after"]) if refusal else 0


def test_waits_grow_and_concern_nobody_else() -> None:
    clock = _Clock()
    waits = PlanWaits(clock)
    seen = []
    for _ in range(5):
        waits.stopped("mallory")
        seen.append(wait_of(waits, "mallory"))
        clock.now += seen[-1]
        assert waits.refusal("mallory") is None
    assert seen == [20, 80, 300, 300, 300]
    assert seen[0] == FIRST_SECONDS
    assert seen[-1] == MOST_SECONDS
    waits.stopped("mallory")
    assert waits.refusal("alice") is None


def test_they_are_forgotten_after_a_while() -> None:
    clock = _Clock()
    waits = PlanWaits(clock)
    for _ in range(3):
        waits.stopped("mallory")
    clock.now += FORGET_SECONDS + 1
    waits.stopped("mallory")
    assert wait_of(waits, "mallory") == FIRST_SECONDS
