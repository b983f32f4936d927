"""The settings of a session are as before when its last run has ended."""

from contextlib import ExitStack

import pytest

from caudal.spark.settings import settings

BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
ADAPTIVE = "spark.sql.adaptive.enabled"
OWN = {BATCH: "77", LARGE: "true", "mine": "1"}


class Session:
    """A session with settings, some of which it refuses to change."""

    def __init__(self, *refused: str) -> None:
        self.conf, self.refused, self.now = self, set(refused), dict(OWN)

    def get(self, name: str, default: str | None) -> str | None:
        return self.now.get(name, default)

    def set(self, name: str, value: str) -> None:
        if name in self.refused:
            raise RuntimeError(f"{name} cannot be changed")
        self.now[name] = value

    def unset(self, name: str) -> None:
        if name in self.refused:
            raise RuntimeError(f"{name} cannot be changed")
        del self.now[name]


def test_runs_at_once_share_the_changes() -> None:
    """The second run begins with the settings of the first, and does not restore those."""
    session, first, second = Session(), ExitStack(), ExitStack()
    first.enter_context(settings(session))
    second.enter_context(settings(session))
    first.close()
    assert (session.now[BATCH], session.now[LARGE], session.now[ADAPTIVE]) == (
        "16",
        "false",
        "false",
    )
    second.close()
    assert session.now == OWN


def test_a_session_is_changed_again_by_a_later_run() -> None:
    session = Session()
    for _ in range(2):
        with settings(session):
            assert session.now[BATCH] == "16"
        assert session.now == OWN


def test_a_setting_that_only_makes_runs_faster_may_be_refused() -> None:
    session = Session(ADAPTIVE)
    with settings(session):
        assert session.now[BATCH] == "16"
        assert ADAPTIVE not in session.now
    assert session.now == OWN


def test_a_setting_that_is_needed_may_not_be_refused() -> None:
    session = Session(LARGE)
    with pytest.raises(RuntimeError, match="useLargeVarTypes"), settings(session):
        pass
    assert session.now == OWN


def test_each_setting_is_restored_on_its_own() -> None:
    session = Session()
    with settings(session):
        session.refused.add(BATCH)
    assert session.now == {**OWN, BATCH: "16"}
