"""One typical mistake with every command, in an empty folder: one line says what is wrong and what
to do, with an exit status of its own, and nothing is left behind."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from caudal.cli.main import main
from caudal.cli.program import COMMANDS, load

NO_CLUSTER = "`caudal up --dir caudal-cluster` creates it"
NO_GATEWAY = "give --gateway URL[,URL...], or set CAUDAL_GATEWAY"
NO_DATASET = "make one with `caudal load APP --to nowhere`"
NO_APP = "neither a shipped one (books, movies) nor a folder; `caudal new` writes a folder"
NO_FILE = "name an existing file, or give its folder with --data DIR"

MISTAKES = (
    ("run movis --data .", 2, NO_APP),
    ("run movies", 4, "no file 'movies_metadata.csv' in .; point to it with --data DIR"),
    ("run movies --data nowhere", 2, "no folder nowhere: give the folder with the files"),
    ("run movies -q q9", 2, "its queries are: q1, q2, q3, q4, q5"),
    ("sql 'SELEC 1'", 2, "  line 1: SELEC 1\n          ^"),
    ("sql \"SELECT * FROM 'order.csv'\"", 4, NO_FILE),
    ("sql \"SELECT prize FROM 'orders.csv'\"", 2, 'Candidate bindings: "price"'),
    ("sql books", 2, "caudal sql books 'SELECT ...'"),
    ("shell order.csv", 4, NO_FILE),
    ("ui order.csv", 4, NO_FILE),
    ("load books --data .", 2, "--to PLACE, or --gateway URL and --dataset NAME"),
    ("load books --data nowhere --to shelf", 2, "no folder nowhere: give the folder"),
    ("load books --to", 2, "requires an argument (caudal load --help shows how)"),
    ("versions nowhere", 2, NO_DATASET),
    ("watch books q4", 2, "--from DATASET, or --gateway URL --dataset NAME"),
    ("compact nowhere", 2, NO_DATASET),
    ("vacuum nowhere", 2, NO_DATASET),
    ("datasets share", 2, "`share`, `unshare` or `delete` and names"),
    ("submit books --data nowhere", 2, "no folder nowhere: give the folder with the files"),
    ("jobs --gateway ftp://one", 2, "'ftp://one' is not a URL: write http://HOST:PORT"),
    ("results j1", 2, NO_GATEWAY),
    ("report j1 --out r.html", 2, NO_GATEWAY),
    ("cancel j1", 2, NO_GATEWAY),
    ("explain movies q99", 2, "its queries are: q1, q2, q3, q4, q5"),
    ("apps movies", 2, "unexpected extra argument(s) (movies) (caudal apps --help shows how)"),
    ("check nowhere", 2, NO_APP),
    ("test nowhere", 2, NO_APP),
    ("new sales", 2, "name data files, each becomes a table; or --from APP to copy one"),
    ("new orders.csv", 2, "give a name first: caudal new orders orders.csv"),
    ("new sales order.csv", 4, "no file order.csv: name existing CSV files"),
    ("case movies small --from .", 2, "copy movies first: caudal new mine --from movies"),
    ("completion powershell", 2, "'powershell' is not one of 'bash', 'zsh', 'fish'"),
    ("generate film --out data", 2, "choose one of: movies, books"),
    ("gateway", 2, "Missing option '--store' (env var: 'CAUDAL_STORE')"),
    ("up --broker nonsense", 2, "write amqp://user:password@host:5672/vhost"),
    ("restart", 2, "name the processes, or give --rolling"),
    ("down", 2, NO_CLUSTER),
    ("status", 2, NO_CLUSTER),
    ("logs worker-1", 2, NO_CLUSTER),
    ("scale worker=2", 2, NO_CLUSTER),
    ("token new", 2, "Missing argument 'NAME' (caudal token new --help shows how)"),
    ("token list", 2, NO_CLUSTER),
    ("token revoke ana", 2, NO_CLUSTER),
    ("quotas", 2, NO_GATEWAY),
    ("doctor", 2, NO_CLUSTER),
    ("chaos --kills 0", 2, "'--kills': Input should be greater than or equal to 1"),
    ("init --from nowhere.toml", 2, "cannot read nowhere.toml: No such file or directory"),
    ("member worker-1", 2, NO_CLUSTER),
    ("medic", 2, "Missing option '--heart' (caudal medic --help shows how)"),
    ("worker --store s --broker x", 2, "write amqp://user:password@host:5672/vhost"),
    ("series", 2, "give a command (caudal series --help shows how)"),
    ("series ingest", 2, "Missing argument 'CONFIG' (caudal series ingest --help shows how)"),
    ("series consolidate x.toml", 2, "Missing option '--store' (env var: 'CAUDAL_STORE')"),
    ("series read x.toml s --store s", 2, "no config x.toml: give a TOML file, or a shipped"),
    ("series list --store nowhere", 2, "give the folder that `caudal series ingest` filled"),
    ("series status x.toml --store s", 2, "no config x.toml: give a TOML file, or a shipped"),
    ("series vacuum", 2, "Missing argument 'CONFIG' (caudal series vacuum --help shows how)"),
    ("series plot x", 2, "Missing argument 'SERIES' (caudal series plot --help shows how)"),
)


@pytest.mark.parametrize(("words", "status", "told"), MISTAKES, ids=[one[0] for one in MISTAKES])
def test_a_mistake_is_told_with_its_remedy(
    words: str,
    status: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("CAUDAL_GATEWAY", "CAUDAL_STORE", "CAUDAL_BROKER"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "orders.csv").write_text("id,price\n1,2.5\n")
    assert main(shlex.split(words)) == status
    err = capsys.readouterr().err
    lines = err.splitlines()
    assert told in err
    assert [line for line in lines if line.startswith("caudal: ")] == lines[:1]
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["orders.csv"]


def test_every_command_has_a_mistake() -> None:
    tried = {tuple(shlex.split(words)) for words, _, _ in MISTAKES}
    for command in COMMANDS:
        inner: dict[str, Any] = getattr(load(command), "commands", {})
        for words in [(command.name,), *((command.name, name) for name in inner)]:
            assert any(one[: len(words)] == words for one in tried), f"no mistake with {words}"
