"""`--store s3://bucket/prefix`: a command killed with SIGKILL and resumed, on a real S3 server."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.harness.seaweed import S3Server
from tests.harness.seaweed import s3_server as s3_server
from tests.harness.waiting import GUARD_SECONDS

from caudal.application import find_application
from caudal.store import S3Store
from caudal.store.port import entries

LOOK_SECONDS = 0.01
CASE = find_application("books").folder / "cases" / "books_and_reviews_apart"


def command(*more: str) -> list[str]:
    options = ("--format", "json", "--batch-size", "4KiB", "--partitions", "2")
    return [sys.executable, "-m", "caudal", "run", "books", "-d", str(CASE), *options, *more]


def has_mapped(store: S3Store) -> bool:
    return any("/mapped/" in entry.key for entry in entries(store, ""))


@pytest.mark.long
def test_killed_on_s3_and_resumed(s3_server: S3Server, tmp_path: Path) -> None:
    store = S3Store(s3_server.bucket, "stored-run", s3_server.settings)
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": s3_server.endpoint,
        "AWS_REGION": s3_server.region,
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
    }
    stored = command("--engine", "split", "--store", f"s3://{s3_server.bucket}/stored-run")
    process = subprocess.Popen(
        stored, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + GUARD_SECONDS
        while process.poll() is None and not any(
            "/mapped/" in one.key for one in entries(store, "")
        ):
            assert time.monotonic() < deadline
            time.sleep(LOOK_SECONDS)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    resumed = subprocess.run(
        [*stored, "--resume"],
        env=environment,
        capture_output=True,
        timeout=GUARD_SECONDS,
        check=True,
    )
    embedded = subprocess.run(command(), capture_output=True, timeout=GUARD_SECONDS, check=True)
    assert resumed.stdout == embedded.stdout
    assert list(entries(store, "")) == []
