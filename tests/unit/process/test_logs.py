"""Lines that people and programs read: one per event, whatever is in it."""

import contextlib
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from caudal.process.logs import fields, set_up_logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The set-up is global; tests after this one want their own."""
    loggers = [logging.getLogger(name) for name in ("", "caudal", "aiormq", "aio_pika")]
    levels, handlers = [one.level for one in loggers], list(loggers[0].handlers)
    yield
    loggers[0].handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def test_json_lines_have_the_fields() -> None:
    stream = io.StringIO()
    set_up_logs("json", "worker", "w1", stream)
    logging.getLogger("caudal.x").info("task done", extra=fields(job="j", batch=0, query=None))
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info", "kind": "worker", "process": "w1", "event": "task done",
        "job": "j", "batch": 0,
    }  # fmt: skip


def test_text_cannot_break_out_of_its_line() -> None:
    stream = io.StringIO()
    set_up_logs("text", "worker", "w1", stream)
    logging.getLogger("caudal.x").warning(
        "a\nb", extra=fields(reason="no\nsuch = thing", job="j", name="", mark="\x1b[31m")
    )
    (line,) = stream.getvalue().splitlines()
    assert line.endswith('warning worker w1: a b reason="no\\nsuch = thing" job=j name="" '
                         'mark="\\u001b[31m"')  # fmt: skip


@pytest.mark.parametrize("style", ["json", "text"])
def test_a_traceback_is_a_field(style: str) -> None:
    stream = io.StringIO()
    set_up_logs("json" if style == "json" else "text", "worker", "w1", stream)
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("caudal.x").exception("unexpected")
    (line,) = stream.getvalue().splitlines()
    assert "ValueError: broken" in line


def test_a_full_disk_costs_lines_and_not_the_process() -> None:
    logged = 0
    with contextlib.suppress(OSError), Path("/dev/full").open("w") as stream:  # of its close
        set_up_logs("json", "worker", "w1", stream)
        for _ in range(100):  # more than fit into a buffer
            logging.getLogger("caudal.x").warning("a round failed")
            logged += 1
    assert logged == 100


def test_libraries_that_log_every_try_are_silent() -> None:
    stream = io.StringIO()
    set_up_logs("text", "worker", "w1", stream)
    logging.getLogger("aiormq.connection").error("amqp://me:secret@host")
    logging.getLogger("caudal.x").debug("details")
    assert stream.getvalue() == ""
