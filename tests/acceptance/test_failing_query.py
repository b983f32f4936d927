"""One query of several fails on a real cluster whose worker is killed: the others are answered."""

import json
import subprocess
from pathlib import Path

import pytest

from caudal.cli.status import ExitStatus
from tests.acceptance.cluster import CAUDAL, running
from tests.unit.client.test_failures import REASON, write_app


def said(command: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == ExitStatus.QUERY, done.stderr
    assert REASON in done.stderr.splitlines()[-1]
    return done


def jobs(*words: str) -> str:
    command = [*CAUDAL, "jobs", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
def test_the_others_are_answered_whoever_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    write_app(folder, rows=20_000)
    run = [*CAUDAL, "run", str(folder), "--data", str(folder), "--format", "json"]
    expected = said(run).stdout
    store = ["--engine", "split", "--store", str(tmp_path / "store")]
    assert said([*run, *store]).stdout == expected
    assert list((tmp_path / "store").rglob("*.json")) == []
    with running(tmp_path / "cluster", "--broker", "embedded") as real:
        command = real.submit(str(folder), folder, "--batch-size", "4KiB", "--patience", "600")
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            job = process.stderr.readline().split()[1]
            real.caudal("chaos", "--kills", "1", "--kinds", "worker")
            out, told = process.communicate()
        assert process.returncode == ExitStatus.QUERY, told
        assert out == expected
        assert any(line.startswith("broken failed: ") for line in told.splitlines())
        way = ["--gateway", real.gateways]
        listed = jobs(*way)
        assert f"{job}  done" in listed
        assert "(failed: broken)" in listed
        given = said([*CAUDAL, "results", job, *way, "--format", "json"]).stdout
        assert json.loads(given) == json.loads(expected)
        assert jobs("delete", job, *way) == f"job {job} (done) is deleted\n"
        assert jobs(*way) == ""
