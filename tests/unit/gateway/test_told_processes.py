"""Who is told what a worker computes."""

from types import SimpleNamespace
from typing import Any

import pytest

from caudal.formats.medic_status import ProcessStatus
from caudal.formats.task_facts import ProcessFact
from caudal.formats.tokens import Right
from caudal.gateway.handlers.cluster import _told
from caudal.gateway.tokens import EVERYBODY, Caller

TASK = "finish salaries"


def status(name: str, kind: str) -> ProcessStatus:
    return ProcessStatus(name, kind, "local", "healthy", 1, 0, 0.1, 0, 1, 1, TASK, "127.0.0.1:1")


@pytest.mark.parametrize(
    ("caller", "known"),
    [(Caller("alice", frozenset({Right.READ, Right.SUBMIT})), ""), (EVERYBODY, TASK)],
)
def test_only_an_admin_is_told_the_tables_and_queries_of_others(caller: Caller, known: str) -> None:
    call: Any = SimpleNamespace(caller=caller)
    assert _told(status("worker-1", "worker"), call).detail == known
    assert _told(ProcessFact("worker-1", "healthy", 1, detail=TASK), call).detail == known
    assert _told(status("medic-1", "medic"), call).detail == TASK
