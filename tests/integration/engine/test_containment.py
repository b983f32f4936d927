"""SQL that wants all memory: one error, no growth, and the process goes on. Each in a process of
its own, because what a process held at its worst cannot be forgotten."""

import subprocess
import sys
import threading

import pytest
from tests.harness.waiting import GUARD_SECONDS

from caudal.duck.containment import RESERVE_BYTES, ContainedCall, allowance

LIMIT_MIB = 200
GROWTH_MIB = (allowance(LIMIT_MIB << 20) + RESERVE_BYTES >> 20) + 30  # between two samples

BOMBS = [
    "SELECT length(repeat('x', 2000000000))",
    "SELECT length(repeat('x', 1000000000)) + length(repeat('y', 1000000000))",
    "SELECT range, repeat('x', 10000000) AS a, repeat('y', 10000000) AS b FROM range(300)",
    "SELECT repeat('x', 1000000) FROM range(100000)",
    "SELECT range::VARCHAR || ' is a string too long to be inlined' FROM range(1000000000)",
    "SELECT length(string_agg(repeat('x', 1000000), ',')) FROM range(5000)",
    "SELECT list(range) FROM range(1000000000)",
    "SELECT len(range(100000000))",
    "SELECT len(range(1000000000000))",
    "SELECT len(list_transform(range(50000000), lambda x: repeat('a', 100)))",
    "SELECT len(string_split(repeat('a ', 20000000), ' '))",
    "SELECT histogram(range) FROM range(100000000)",
    "SELECT to_json(range(60000000))",
    "SELECT max(length(format('{:0>500000000}', range))) FROM range(5)",
    "WITH RECURSIVE r AS (SELECT 'a' AS s UNION ALL SELECT s || s FROM r) SELECT length(s) FROM r",
    "SELECT [range, range], {'a': range} FROM range(1000000000)",
]

SCRIPT = """
import sys
from caudal.duck.sandbox import SandboxLimits, Sandbox
from caudal.errors import QueryError
from tests.harness.peak_memory import peak_mib
limit, sql = int(sys.argv[1]), sys.argv[2]
with Sandbox(SandboxLimits(memory_bytes=limit << 20)) as sandbox:
    assert sandbox.select("SELECT 1 AS a", {}).num_rows == 1
    before = peak_mib()
    for _ in range(3):
        try:
            sandbox.select(sql, {})
        except QueryError as error:
            print(error)
        assert sandbox.select("SELECT 1 AS a", {}).to_pydict() == {"a": [1]}
    print(peak_mib() - before)
"""


def python(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("sql", BOMBS)
def test_a_bomb_is_one_error_and_no_growth(sql: str) -> None:
    *messages, grown = python(SCRIPT, str(LIMIT_MIB), sql)
    assert len(messages) == 3
    assert len(set(messages)) == 1
    assert messages[0] in (
        f"the query needs more than {LIMIT_MIB} MiB of memory",
        "Lists larger than 2^32 elements are not supported",  # DuckDB does not even begin
    )
    assert int(grown) < GROWTH_MIB


def test_a_process_with_a_bound_holds_no_more() -> None:
    """Two threads whose own limits would allow more than the process may hold."""
    script = """
import resource, sys
from concurrent.futures import ThreadPoolExecutor
from caudal.duck.containment import memory_bound
from caudal.duck.sandbox import SandboxLimits, Sandbox
from caudal.errors import QueryError
def bomb(number):
    with Sandbox(SandboxLimits(memory_bytes=4 << 30)) as sandbox:
        try:
            sandbox.select("SELECT range::VARCHAR || repeat('x', 100) FROM range(1000000000)", {})
        except QueryError as error:
            return str(error)
with memory_bound(500 << 20):
    with ThreadPoolExecutor(2) as pool:
        for message in pool.map(bomb, range(2)):
            print(message)
    with Sandbox() as sandbox:
        print(sandbox.select("SELECT 1 AS a", {}).num_rows)
from tests.harness.peak_memory import peak_mib
print(peak_mib())
"""
    first, second, rows, peak = python(script)
    assert first == second == "the query needs more than 4096 MiB of memory"
    assert rows == "1"
    libraries = 150  # their pages are not private
    assert int(peak) < 500 + (RESERVE_BYTES >> 20) + 30 + libraries


def test_what_the_process_held_before_is_not_the_bounds_business() -> None:
    """As in a notebook full of its owner's data."""
    script = """
import numpy as np
from caudal.duck.containment import available_bytes, memory_bound
from caudal.duck.sandbox import SandboxLimits, Sandbox
from caudal.errors import QueryError
free = available_bytes()
own = np.ones(100 << 20)
print(abs(available_bytes() - free) < 950 << 20)
with memory_bound(500 << 20), Sandbox(SandboxLimits(memory_bytes=4 << 30)) as sandbox:
    print(sandbox.select("SELECT 1 AS a", {}).num_rows)
    try:
        sandbox.select("SELECT range::VARCHAR || repeat('x', 100) FROM range(1000000000)", {})
    except QueryError as error:
        print(error)
"""
    sane, rows, message = python(script)
    assert (sane, rows) == ("True", "1")
    assert message == "the query needs more than 4096 MiB of memory"


def test_what_an_earlier_task_left_behind_is_not_the_next_ones_fault() -> None:
    """A worker of 500 MiB that holds 700: every task still has its half, and no more than that."""
    script = """
import numpy as np
from caudal.duck.containment import contained_task, held_bytes, memory_bound
from caudal.duck.sandbox import SandboxLimits, Sandbox
from caudal.errors import QueryError
with memory_bound(500 << 20, tasks=True), Sandbox(SandboxLimits(memory_bytes=4 << 30)) as sandbox:
    left = np.ones(700 << 17)
    with contained_task(sandbox.interrupt):
        own = np.ones(150 << 17)
        print(sandbox.select("SELECT count(*) AS n FROM range(1000000)", {}).to_pydict())
        try:
            sandbox.select("SELECT range::VARCHAR || repeat('x', 99) FROM range(100000000)", {})
        except QueryError as error:
            print(type(error).__name__)
        try:
            np.ones(800 << 17)
        except MemoryError:
            print("refused")
    print(len(np.ones(800 << 17)) >> 17)
from tests.harness.peak_memory import peak_mib
print(peak_mib())
"""
    counted, query, refused, after, _peak = python(script)
    assert counted == "{'n': [1000000]}"
    assert (query, refused, after) == ("MemoryExceededError", "refused", "800")


def test_after_a_call_nothing_is_limited() -> None:
    script = """
import resource
from caudal.duck.sandbox import SandboxLimits, Sandbox
before = resource.getrlimit(resource.RLIMIT_DATA)
with Sandbox(SandboxLimits(memory_bytes=100 << 20)) as sandbox:
    sandbox.select("SELECT 1", {})
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    print(len(bytearray(600 << 20)) >> 20)
"""
    assert python(script) == ["600"]


def test_a_limit_from_outside_stays_in_force() -> None:
    """As in the child process of a suspect."""
    script = """
import resource
from caudal.duck.sandbox import SandboxLimits, Sandbox
from caudal.errors import QueryError
with Sandbox(SandboxLimits(memory_bytes=4 << 30)) as sandbox:
    sandbox.select("SELECT 1", {})
    resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, resource.RLIM_INFINITY))
    try:
        sandbox.select("SELECT length(repeat('x', 3000000000))", {})
    except QueryError as error:
        print(error)
    print(resource.getrlimit(resource.RLIMIT_DATA)[0] >> 30)
"""
    assert python(script) == ["the query needs more than 4096 MiB of memory", "3"]


def test_waiting_for_a_processor_costs_no_time_and_sleep_does() -> None:
    """A thread that runs, or could run, spends its CPU time only; one that sleeps, all of it."""
    mine = ContainedCall(lambda: None, 0, 1.0)
    assert mine.spent_seconds(since_last=100.0) < 50

    theirs: list[ContainedCall] = []
    begun, end = threading.Event(), threading.Event()

    def sleep() -> None:
        theirs.append(ContainedCall(lambda: None, 0, 1.0))
        begun.set()
        end.wait()

    thread = threading.Thread(target=sleep)
    thread.start()
    begun.wait()
    try:
        spent = 0.0
        while spent < 100:  # until it has fallen asleep
            spent = theirs[0].spent_seconds(since_last=100.0)
    finally:
        end.set()
        thread.join()
