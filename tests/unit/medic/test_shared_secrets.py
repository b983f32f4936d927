"""What all hosts must have in common is invented on the only host, and never on one of several."""

from pathlib import Path

import pytest

from caudal.cluster.compare_settings import PASSWORD
from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE
from caudal.errors import UsageError

ALONE = "[hosts.a]\nbroker = true\n"
SEVERAL = f'{ALONE}[hosts.b]\naddress = "127.0.0.2"\n'
GIVEN = "a secret that is long enough"


def cluster(folder: Path, text: str, *given: str) -> Cluster:
    """A folder with this cluster.toml and these files of secrets."""
    (folder / FILE).write_text(text)
    for name in given:
        (folder / name).touch(0o600)
        (folder / name).write_text(GIVEN)
    return Cluster.open(folder, "a")


@pytest.mark.parametrize(
    ("given", "missing"),
    [((), "secret"), ((PASSWORD,), "secret"), (("secret",), PASSWORD)],
)
def test_on_one_of_several_hosts_what_is_missing_is_named_and_nothing_is_made(
    tmp_path: Path, given: tuple[str, ...], missing: str
) -> None:
    path = tmp_path / missing
    words = (
        rf"^{path} is missing, and all hosts need the same one: copy it .*/dev/urandom.*> {path}"
    )
    with pytest.raises(UsageError, match=words):
        cluster(tmp_path, SEVERAL, *given).lay_out()
    assert {one.name for one in tmp_path.iterdir()} == {FILE, *given}


def test_on_one_of_several_hosts_what_is_there_is_used(tmp_path: Path) -> None:
    several = cluster(tmp_path, SEVERAL, "secret", PASSWORD)
    several.lay_out()
    assert several.secret.read_text() == several.password() == GIVEN


def test_several_hosts_need_no_password_of_a_broker_that_is_not_theirs(tmp_path: Path) -> None:
    text = 'broker = "amqp://127.0.0.1:1/"\n' + SEVERAL.replace("broker = true\n", "")
    cluster(tmp_path, text, "secret").lay_out()
    assert not (tmp_path / PASSWORD).exists()


def test_the_only_host_makes_both_once(tmp_path: Path) -> None:
    alone = cluster(tmp_path, ALONE)
    alone.lay_out()
    made = alone.secret.read_text(), alone.password()
    assert len(set(made)) == 2
    assert all(len(one.strip()) == 64 for one in made)
    alone.lay_out()
    assert (alone.secret.read_text(), alone.password()) == made
