"""A real cluster for the page: tokens, chaos allowed, and a job with strange data."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.cluster import CAUDAL, RealCluster, free_hundred

SCRIPT = "<script>document.title='taken'</script>"
RIGHT_TO_LEFT = "שלום עולם"
LONG = "Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenauszahlungsstelle"
BROKEN = f"x,Broken {SCRIPT},1990,1"
FILMS = f"""id,title,year,score
1,{SCRIPT},1999,7.5
2,{RIGHT_TO_LEFT},2001,8.5
3,{LONG},2003,6.5
4,Plain,1995,5
{BROKEN}
"""
APP = """title = "Films with strange names"
[[tables]]
name = "films"
files = ["films.csv"]
columns = ["id", "title", "year", "score"]
"""
TABLE = """SELECT TRY_CAST(id AS INTEGER) AS id, title, CAST(year AS INTEGER) AS year,
  CAST(score AS DOUBLE) AS score,
  CASE WHEN TRY_CAST(id AS INTEGER) IS NULL THEN 'id is not a number' END AS reject
FROM raw
"""
QUERIES = {
    "all_films": "-- All films\nSELECT id, title, year, score FROM films ORDER BY id\n",
    "by_decade": "-- Films by decade\nSELECT year // 10 * 10 AS decade, count(*) AS films,"
    " avg(score) AS mean FROM films GROUP BY 1 ORDER BY 1\n",
}


@dataclass(frozen=True)
class PageCluster:
    """The cluster, its first gateway, and the token of an admin."""

    cluster: RealCluster
    token: str
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.cluster.port + 1}"

    def submit(self) -> str:
        """Send the films, wait for the answers, and return the job."""
        words = ["--token-file", str(self.folder / "token")]
        command = self.cluster.submit(str(self.folder / "films"), self.folder / "data", *words)
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as client:
            job = job_of(client)
            client.communicate()
        assert client.returncode == 0
        return job


def job_of(client: "subprocess.Popen[str]") -> str:
    """Return the job that `caudal submit` says it has made. Pages make jobs of their own, so the
    newest job of a list may be another one."""
    assert client.stderr is not None
    word, job = client.stderr.readline().split()
    assert word == "job"
    return job


@contextmanager
def page_cluster(folder: Path) -> Iterator[PageCluster]:
    """A cluster that is up; taken down and purged at the end."""
    write_films(folder)
    cluster = RealCluster(folder / "cluster", free_hundred())
    config = folder / "cluster" / "cluster.toml"
    try:
        config.parent.mkdir()
        made = [*CAUDAL, "token", "new", "eva", "--rights", "read,submit,admin"]
        new = subprocess.run(
            [*made, "--token-file", str(folder / "cluster" / "tokens")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        (folder / "token").write_text(new.stdout)
        (folder / "token").chmod(0o600)
        config.write_text(
            'broker = "embedded"\ntokens = "tokens"\nchaos = true\n'
            f"[hosts.local]\nport = {cluster.port}\nworkers = 2\n"
        )
        config.chmod(0o600)
        cluster.caudal("up")
        yield PageCluster(cluster, new.stdout.strip(), folder)
    finally:
        cluster.caudal("down", "--purge", check=False)


def write_films(folder: Path) -> None:
    app, data = folder / "films", folder / "data"
    for one in (app / "tables", app / "queries", data):
        one.mkdir(parents=True)
    (app / "app.toml").write_text(APP)
    (app / "tables" / "films.sql").write_text(TABLE)
    for name, sql in QUERIES.items():
        (app / "queries" / f"{name}.sql").write_text(sql)
    (data / "films.csv").write_text(FILMS)
