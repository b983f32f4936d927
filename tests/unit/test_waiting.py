import pytest
from tests.harness import waiting
from tests.harness.waiting import until


def test_nothing_empty_is_an_answer() -> None:
    answers: list[object] = ["an answer", [], "", 0, False, None]
    assert until(answers.pop) == "an answer"


def test_what_never_happens_fails_with_the_last_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "GUARD_SECONDS", 0.05)

    def ask() -> bool:
        raise OSError("still away")

    with pytest.raises(pytest.fail.Exception, match=r"did not happen in .*last: still away"):
        until(ask, OSError, pause_seconds=0.001)
