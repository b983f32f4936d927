"""A message from the broker: nothing of it is believed that was not looked at."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from caudal.errors import FormatError
from caudal.formats import message as message_format
from caudal.formats.keys import Message, Task
from caudal.jobs.readiness import Shape, Step, belongs

TASK = {"kind": "map", "name": "t", "number": 3}
GOOD = {"job": "j", "run": "r", "group": 4, "slow": 0, "format": 1}


def changed(**values: object) -> bytes:
    task = {name: values.get(name, value) for name, value in TASK.items()}
    rest = {name: value for name, value in values.items() if name not in TASK}
    return msgspec.json.encode({**GOOD, "task": task, **rest})


def test_a_good_one_comes_through() -> None:
    assert message_format.decode(changed()) == Message("j", "r", Task("map", "t", 3), 4)


@pytest.mark.parametrize(
    "values",
    [
        {"group": 0},
        {"group": -1},
        {"group": 1_001},
        {"group": 1 << 70},
        {"group": "4"},
        {"job": "../../etc"},
        {"job": ""},
        {"job": "j" * 65},
        {"job": "j\n"},
        {"run": "a/b"},
        {"run": "."},
        {"name": "a/b"},
        {"name": ""},
        {"name": "t" * 101},
        {"name": "é"},
        {"number": -1},
        {"number": 4_000_000},
        {"number": 1.5},
        {"kind": "fold", "number": 9_999},
        {"kind": "merge", "number": 1_000_000},
        {"kind": "finish", "number": 1},
        {"kind": "delete"},
        {"slow": -1},
        {"slow": 17},
        {"slow": True},
        {"format": 2},
        {"more": "x" * 3_000},
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        message_format.decode(changed(**values))


@given(some.binary(max_size=300) | some.text(max_size=300).map(str.encode))
def test_rubbish_is_refused_and_nothing_else_is_raised(data: bytes) -> None:
    with pytest.raises(FormatError):
        message_format.decode(data)


def test_a_task_of_another_job_is_none_of_this_one() -> None:
    folds = {"f": Step(frozenset("t"), frozenset(), 3)}
    shape = Shape.of(["t"], folds, {"q": Step(frozenset(), frozenset("f"))})
    for task in (Task("map", "t", 7), Task("merge", "t"), Task("fold", "f", 2)):
        assert belongs(task, shape)
    assert belongs(Task("finish", "q"), shape)
    for task in (Task("map", "f"), Task("merge", "q"), Task("fold", "f", 3), Task("finish", "t")):
        assert not belongs(task, shape)
