"""cluster.toml: what is written can be read, and mistakes are explained."""

import itertools
from pathlib import Path

import pytest

from caudal.cluster import rabbit_node
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import MemberKind, roster
from caudal.cluster.settings import FILE, ClusterSettings, Host, Tls, read_settings
from caudal.cluster.upkeep import start_all
from caudal.cluster.write_config import write_settings
from caudal.errors import UsageError
from caudal.formats.quotas import Share


def written(tmp_path: Path, text: str) -> ClusterSettings:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    return read_settings(tmp_path)


@pytest.mark.parametrize("has_rabbit", [True, False])
def test_the_file_that_up_writes_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_rabbit: bool
) -> None:
    monkeypatch.setattr(rabbit_node, "is_installed", lambda: has_rabbit)
    write_settings(tmp_path)
    settings = read_settings(tmp_path)
    broker = "private" if has_rabbit else "embedded"
    host = Host(broker=has_rabbit, metrics=8540)
    assert settings == ClusterSettings({"local": host}, broker=broker)
    text = (tmp_path / FILE).read_text()
    explained = (ClusterSettings, Host, Tls, Share)
    for name in (one for kind in explained for one in kind.__struct_fields__):
        assert f"{name}" in text, f"{name} is not explained"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[hosts]", "needs at least one host"),
        ("[hosts.a]\nbroker = true\nmedics = 12", "medics = 12: must be from 0 to 9"),
        (f"[hosts.a]\nworkers = {10**18}", "must be from 0 to 999"),
        ("[hosts.a]\nbroker = true\nwrokers = 1", "wrokers"),
        ("[hosts.a]\n", "on exactly one host, not 0"),
        ('broker = "amqp://x"\n[hosts.a]\nbroker = true', "private broker only"),
        ("[hosts.a]\nbroker = true\nmedics = 0", "no medics"),
        ("[hosts.a]\nbroker = true\n[hosts.b]\n", "share an address"),
        ("[hosts.a]\nbroker = true\nport = 80", "port = 80"),
        ('launcher = "k8s"\n[hosts.a]\nbroker = true', 'choose "local" or "docker"'),
        ('name = "A B"\n[hosts.a]\nbroker = true', "'A B' is not a valid name"),
        ('[hosts.a]\nbroker = true\n[tls]\nkey = "k"', "[tls] needs both"),
        ('[hosts.a]\nbroker = true\n[quotas]\nstored = "much"', "'much' is not a size"),
        ("[hosts.a]\nbroker = true\n[quotas]\njob = 1", "job"),
        ("[hosts.a]\nbroker = true\n[quotas.owners.local]\njobs = 1", "name of an owner"),
        ("[hosts.a]\nbroker = maybe", "cluster.toml: not valid TOML, correct it: "),
    ],
)
def test_a_mistake_is_explained(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=r"cluster\.toml") as caught:
        written(tmp_path, text)
    assert complaint in str(caught.value)


def test_no_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="caudal up"):
        read_settings(tmp_path)


def test_one_host_has_short_names_and_its_own_ports() -> None:
    members = roster(ClusterSettings({"local": Host(broker=True)}))
    assert [(one.name, one.port) for one in members] == [
        ("broker", 8510),
        ("gateway-1", 8421),
        ("gateway-2", 8422),
        ("worker-1", 0),
        ("worker-2", 0),
        ("medic-1", 8470),
        ("medic-2", 8471),
        ("medic-3", 8472),
    ]


def test_several_hosts_are_told_apart_and_medics_have_one_order() -> None:
    hosts = {name: Host(f"127.0.0.{at}", medics=1, workers=1) for at, name in enumerate("abc", 2)}
    members = roster(ClusterSettings(hosts, broker="amqp://x"))
    medics = [one for one in members if one.kind is MemberKind.MEDIC]
    assert [(one.name, one.number) for one in medics] == [
        ("medic-1.a", 1),
        ("medic-1.b", 2),
        ("medic-1.c", 3),
    ]
    assert len({one.name for one in members}) == len(members)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"port": 80}, "port = 80: must be from 1024"),
        ({"medics": 0}, "no medics"),
        ({"broker": "nonsense"}, "the broker's URL is not valid"),
        ({"store": "/dev/null"}, "/dev/null"),
        ({"store": "a\nb"}, "was not written"),
    ],
)
def test_what_would_be_wrong_is_not_written(
    tmp_path: Path, asked: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError, match=r"cluster\.toml was not written: ") as caught:
        write_settings(tmp_path / "new", **asked)
    assert complaint in str(caught.value)
    assert not (tmp_path / "new" / FILE).exists()


def test_quotes_in_what_up_is_told_are_kept(tmp_path: Path) -> None:
    write_settings(tmp_path, store='my "store"')
    assert read_settings(tmp_path).store == 'my "store"'


def test_gateways_are_told_of_tokens_quotas_certificates_and_the_audit_log(tmp_path: Path) -> None:
    text = (
        'tokens = "who"\n[tls]\ncertificate = "c.pem"\nkey = "/k.pem"\n[hosts.a]\nbroker = true\n'
    )
    written(tmp_path, text)
    cluster = Cluster.open(tmp_path)
    member = next(one for one in cluster.here if one.kind is MemberKind.GATEWAY)
    command = cluster.command(member, tmp_path / "heart")
    given = dict(itertools.pairwise(command))
    assert given["--token-file"] == str(tmp_path / "who")
    assert given["--quotas"] == str(tmp_path / FILE)
    assert given["--tls-certificate"] == str(tmp_path / "c.pem")
    assert given["--tls-key"] == "/k.pem"
    assert given["--audit"] == str(tmp_path / "audit" / "gateway-1.jsonl")


def test_what_the_world_reaches_is_not_started_without_tokens(tmp_path: Path) -> None:
    text = 'broker = "amqp://x@127.0.0.1:1/"\n[hosts.a]\naddress = "0.0.0.0"\n'
    written(tmp_path, text)
    with pytest.raises(UsageError, match="caudal token new NAME"):
        start_all(Cluster.open(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [FILE], "nothing was made"
