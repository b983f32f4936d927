"""A real cluster with two owners, TLS, quotas and an audit log, driven by its commands."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from caudal.cluster.settings import FILE
from caudal.cluster.write_config import write_settings
from tests.acceptance.cluster import CAUDAL, RealCluster, free_hundred
from tests.harness.certificates import Pair, make_authority, make_server
from tests.harness.waiting import until

FILMS = (
    "id,title,genres,production_countries,spoken_languages,release_date,budget,revenue,overview\n"
)
FILM = "{0},Film,[],\"[{{'name': 'Chile'}}]\",[],2001-01-01,1,2,good\n"


@pytest.fixture
def authority(tmp_path: Path) -> Pair:
    return make_authority(tmp_path)


@pytest.fixture
def real(tmp_path: Path, authority: Pair) -> Iterator[RealCluster]:
    folder, port = tmp_path / "cluster", free_hundred()
    write_settings(folder, port=port, gateways=2, workers=1, medics=1)
    pair = make_server(folder, authority, "gateway")
    text = (folder / FILE).read_text()
    text = text.replace('tokens = ""', 'tokens = "tokens"')
    text = text.replace('certificate = ""', f'certificate = "{pair.certificate.name}"')
    text = text.replace('key = ""', f'key = "{pair.key.name}"')
    text = text.replace("[quotas] ", "[quotas]\njobs = 0 # ").replace("# [quotas.owners.alice]", "")
    (folder / FILE).write_text(text + "\n[quotas.owners.alice]\njobs = 5\n")
    cluster = RealCluster(folder, port)
    for name in ("alice", "berta"):
        made = cluster.caudal("token", "new", name).stdout
        (tmp_path / f"{name}.token").write_text(made)
    try:
        up = cluster.caudal("up")
        assert f"https://127.0.0.1:{port + 1}" in up.stdout
        yield cluster
    finally:
        cluster.caudal("down", "--purge", check=False)


def ask(real: RealCluster, authority: Pair, *words: str) -> subprocess.CompletedProcess[str]:
    gateways = f"https://127.0.0.1:{real.port + 1},https://127.0.0.1:{real.port + 2}"
    environment = {"CAUDAL_GATEWAY": gateways, "CAUDAL_CA": str(authority.certificate)}
    return subprocess.run(
        [*CAUDAL, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_two_owners_over_tls_with_quotas_and_an_audit_log(
    real: RealCluster, authority: Pair, tmp_path: Path
) -> None:
    (tmp_path / "movies_metadata.csv").write_text(FILMS + FILM.format(1) + FILM.format(2))
    select = "SELECT count(*) AS films FROM movies"
    alice = ("--token-file", str(tmp_path / "alice.token"))
    berta = ("--token-file", str(tmp_path / "berta.token"))
    sql = ("sql", "movies", select, "--data", str(tmp_path), "--format", "json", "--gateway",
           f"https://127.0.0.1:{real.port + 1}")  # fmt: skip
    done = ask(real, authority, *sql, *alice)
    assert json.loads(done.stdout) == [{"films": 2}], done.stderr
    (job,) = [line.split()[0] for line in ask(real, authority, "jobs", *alice).stdout.splitlines()]
    assert ask(real, authority, "jobs", *berta).stdout == ""
    assert ask(real, authority, "results", job, *berta).returncode == 10
    shown = ask(real, authority, "quotas", *berta).stdout
    assert "berta  jobs  0 of 0" in shown
    assert "alice" not in shown
    refused = ask(
        real, authority, "submit", "movies", "--data", str(tmp_path), "--patience", "0", *berta
    )
    assert refused.returncode == 10
    assert "quota jobs" in refused.stderr
    lines = [
        json.loads(line)
        for path in sorted((real.folder / "audit").iterdir())
        for line in path.read_text().splitlines()
    ]
    seen = {(line["action"], line.get("owner"), line.get("code")) for line in lines}
    assert seen >= {
        ("create", "alice", None),
        ("fetch", "alice", None),
        ("refuse", "berta", "no_job"),
        ("refuse", "berta", "over_quota"),
    }
    until(lambda: "over quota" in real.caudal("status").stdout)
