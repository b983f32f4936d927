"""cluster.toml says everything that the single commands can, and every key is documented."""

from pathlib import Path

import msgspec
import pytest

from caudal.cli.program import COMMANDS, load
from caudal.cluster.folder import Cluster
from caudal.cluster.ports import listening_ports
from caudal.cluster.roster import Member, metrics_port
from caudal.cluster.settings import FILE, ClusterSettings, Host, Tls, parse
from caudal.cluster.write_config import write_settings
from caudal.errors import UsageError
from caudal.formats.medic_status import ProcessStatus, StatusReply
from caudal.medic.figures import MedicMetrics

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "cluster-toml.md").read_text()
EVERYTHING = """
broker = "amqp://caudal:x@127.0.0.1:5672/"
tokens = "tokens"
worker_memory = "900MB"
workspace = "spill"
wait = "5m"
sentiment = ["transformers:/models/a", "transformers:/models/b"]
job_timeout = "2d"
rate = 50
keep_results = "7d"
fsync = false
log_format = "text"
metrics_token = "metrics.token"
[tls]
certificate = "c.pem"
key = "k.pem"
[hosts.a]
workers = 3
tasks = ["map,slow", "fold,finish"]
metrics = 8600
"""
# What the command of a member gets from elsewhere: its environment, and --heart from its launcher.
ELSEWHERE = {"--broker", "--help"}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, parse(EVERYTHING.encode(), FILE), "a")


def words(cluster: Cluster, name: str) -> list[str]:
    member = next(one for one in cluster.here if one.name == name)
    return cluster.arguments(member, Path("heart"))


@pytest.mark.parametrize("name", ["gateway", "worker"])
def test_every_option_of_a_single_command_follows_from_the_file(
    cluster: Cluster, name: str
) -> None:
    command = load(next(one for one in COMMANDS if one.name == name))
    options = {
        frozenset((*one.opts, *one.secondary_opts))
        for one in command.params
        if one.param_type_name == "option"
    }
    given = set(words(cluster, f"{name}-1"))
    left = {min(option) for option in options if not option & (given | ELSEWHERE)}
    assert left == set()


def after(said: list[str], option: str) -> str:
    return said[said.index(option) + 1]


def test_workers_take_roles_in_turn_and_ports_in_order(cluster: Cluster) -> None:
    said = [words(cluster, f"worker-{number}") for number in (1, 2, 3)]
    assert [after(one, "--tasks") for one in said] == ["map,slow", "fold,finish", "map,slow"]
    assert [after(one, "--metrics-port") for one in said] == ["8610", "8611", "8612"]
    assert after(said[0], "--wait") == "300.0"
    assert after(said[0], "--workspace") == str(cluster.folder / "spill")
    medic = next(one for one in cluster.here if one.name == "medic-3")
    assert metrics_port(cluster.settings, medic) == 8602


def test_the_commands_accept_what_the_file_makes(cluster: Cluster) -> None:
    for name in ("gateway-1", "worker-1", "medic-1"):
        kind, *rest = words(cluster, name)
        command = load(next(one for one in COMMANDS if one.name == kind))
        command.make_context(kind, [*rest, *(["--broker", "x"] if kind != "medic" else [])])


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('sentiment = ["transformers:models"]', "a folder that begins with /"),
        ('wait = "long"', "wait: 'long' is not a time"),
        ('job_timeout = "1"', "job_timeout: '1' is not a time"),
        ('job_timeout = ""', "job_timeout: '' is not a time"),
        ('worker_memory = "lots"', "worker_memory: 'lots' is not a size"),
        ('log_format = "xml"', 'choose "json" or "text"'),
        ("rate = 0", "rate = 0.0: must be at least 1"),
        ('[hosts.a]\ntasks = ["mop"]', "[hosts.a] tasks: --tasks mop"),
        ('[hosts.a]\nworkers = 1\ntasks = ["map,slow", "fold,finish"]', "take fold, finish tasks"),
        ("[hosts.a]\nmetrics = 80", "metrics = 80: must be 0, or from"),
        ("[hosts.a]\nmetrics = 8450", "metrics = 8450 meets `port`: try 8520"),
    ],
)
def test_a_wrong_value_is_explained(line: str, complaint: str) -> None:
    text = f'broker = "embedded"\n{line}\n' + ("" if "[hosts" in line else "[hosts.a]\n")
    with pytest.raises(UsageError) as caught:
        parse(text.encode(), FILE)
    assert complaint in str(caught.value)


def test_a_new_file_names_ports_of_metrics_that_meet_no_others(tmp_path: Path) -> None:
    """Neither the cluster's own, nor those of clusters on the hundreds before and after it."""
    used = []
    for port in (8320, 8420, 8520):
        folder = tmp_path / str(port)
        write_settings(folder, port=port, broker="private", workers=20, gateways=19, medics=9)
        cluster = Cluster.open(folder)
        assert cluster.settings.hosts["local"].metrics == port + 120
        used += [
            (where.protocol, where.port)
            for member in cluster.here
            for where in listening_ports(cluster.settings, member)
        ]
    assert len(used) == len(set(used))


def test_a_new_file_names_no_ports_that_do_not_exist(tmp_path: Path) -> None:
    write_settings(tmp_path, port=65_400)
    assert Cluster.open(tmp_path).settings.hosts["local"].metrics == 0


@pytest.mark.parametrize("kind", [ClusterSettings, Host, Tls])
def test_every_key_is_documented_with_its_default(kind: type[msgspec.Struct]) -> None:
    rows = {line.split("|")[1].strip(" `"): line for line in PAGE.splitlines() if "|" in line}
    assert set(kind.__struct_fields__) <= set(rows) | {"hosts", "tls", "quotas"}


def test_a_medic_tells_its_status_as_figures() -> None:
    one = ProcessStatus(
        "worker-1", "worker", "a", "healthy", 3, 2, 0.1, 7, 1, 1, "", "127.0.0.1"
    )  # fmt: skip
    reply = StatusReply("medic-1", "leading", 4, "medic-1", [one], 5)
    registry = MedicMetrics(lambda: reply).registry
    assert registry.get_sample_value("caudal_medic_leading") == 1
    assert registry.get_sample_value("caudal_medic_term") == 4
    assert registry.get_sample_value("caudal_medic_processes", {"state": "healthy"}) == 1
    assert registry.get_sample_value("caudal_medic_processes", {"state": "dead"}) == 0
    assert registry.get_sample_value("caudal_medic_restarts_total", {"process": "worker-1"}) == 2
    assert registry.get_sample_value("caudal_medic_unverified_messages_total") == 5
    assert registry.get_sample_value("caudal_medic_unreadable_heartbeats_total") == 0


def test_gateways_have_no_port_of_their_own_for_metrics(cluster: Cluster) -> None:
    gateway: Member = next(one for one in cluster.here if one.name == "gateway-1")
    assert metrics_port(cluster.settings, gateway) is None
