"""Every session is in UTC, whatever the machine's zone, on every cursor."""

import os
import subprocess
import sys
import textwrap

SCRIPT = """
    from caudal.duck.binder import DuckDBBinder
    from caudal.duck.database import open_database
    from caudal.duck.sandbox import Sandbox
    from caudal.kernels.sentiment import load_model

    SQL = (
        "SELECT (TIMESTAMPTZ '2020-01-01 23:30:00-05')::DATE::VARCHAR AS d, "
        "current_setting('TimeZone') AS z"
    )
    with open_database(load_model("lexicon")) as connection:
        for one in (connection, connection.cursor()):
            print(one.sql(SQL).fetchall())
    with Sandbox() as sandbox:
        print([tuple(row.values()) for row in sandbox.select(SQL, {}).to_pylist()])
    binder = DuckDBBinder({})
    for one in (binder._connection, binder._plans, binder._narrowed):
        print(one.sql(SQL).fetchall())
"""


def test_the_machine_s_zone_changes_nothing() -> None:
    given = {**os.environ, "TZ": "America/New_York"}
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) == {"[('2020-01-02', 'UTC')]"}
