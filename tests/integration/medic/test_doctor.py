"""What the doctor says of tokens and certificates, made by openssl."""

from pathlib import Path

from tests.harness.certificates import make_authority, make_server
from tests.harness.gateway_place import ALICE, BERTA, write_token

from caudal.cluster.doctor import _access
from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE


def test_the_doctor_looks_at_tokens_and_certificates(tmp_path: Path) -> None:
    text = 'broker = "amqp://x@127.0.0.1:1/"\ntokens = "who"\n'
    text += '[tls]\ncertificate = "c"\nkey = "k"\n[hosts.a]\n'
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    cluster = Cluster.open(tmp_path)
    assert "who cannot be read" in _found(cluster)["access"]
    write_token(tmp_path / "who", "alice", ALICE)
    assert "cannot be used" in _found(cluster)["access"]
    pair = make_server(tmp_path, make_authority(tmp_path), "gateway")
    pair.certificate.rename(tmp_path / "c")
    pair.key.rename(tmp_path / "k")
    found = _found(cluster)
    assert found["tokens"] == "of 1 owners"
    assert found["certificate"] == "c matches its key"


def test_the_doctor_wants_three_workers_for_several_owners(tmp_path: Path) -> None:
    text = 'broker = "amqp://x@127.0.0.1:1/"\ntokens = "who"\n[hosts.a]\nworkers = 2\n'
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    write_token(tmp_path / "who", "alice", ALICE)
    assert "workers" not in _found(Cluster.open(tmp_path))
    write_token(tmp_path / "who", "berta", BERTA)
    assert _found(Cluster.open(tmp_path))["workers"].startswith("2 for 2 owners")
    (tmp_path / FILE).write_text(text.replace("workers = 2", "workers = 3"), encoding="utf-8")
    assert "workers" not in _found(Cluster.open(tmp_path))


def _found(cluster: Cluster) -> dict[str, str]:
    return {one.what: one.found for one in _access(cluster)}
