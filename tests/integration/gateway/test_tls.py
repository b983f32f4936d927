"""TLS of gateways and clients: real handshakes, certificates that change, and no trust."""

import os
import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.harness.certificates import Pair, make_authority, make_server
from tests.harness.gateway_place import ALICE, Place, job_content
from tests.harness.gateway_server import Running, head, read_all, running
from tests.harness.waiting import GUARD_SECONDS

from caudal.client.addresses import read_ca
from caudal.client.http import HttpGateways
from caudal.errors import UsageError
from caudal.gateway.limits import GatewayLimits
from caudal.process.certificates import Certificate, client_context


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def pair(tmp_path: Path, authority: Pair) -> Pair:
    return make_server(tmp_path, authority, "one", number=1001)


@pytest.fixture
def place() -> Iterator[Place]:
    with Place(limits=GatewayLimits(connections=20, handshake_seconds=600.0)) as made:
        yield made


@pytest.fixture
def server(place: Place, pair: Pair) -> Iterator[Running]:
    with running(place, Certificate(pair.certificate, pair.key)) as found:
        yield found


def gateways(
    server: Running, trusted: ssl.SSLContext | None, seconds: float = 60.0
) -> HttpGateways:
    address = f"https://127.0.0.1:{server.port}"
    return HttpGateways([address], ALICE, patience_seconds=seconds, trusted=trusted)


def serial(server: Running, authority: Pair) -> int:
    """The number of the certificate that the server shows now."""
    context = client_context(authority.certificate)
    with server.raw() as raw, context.wrap_socket(raw, server_hostname="127.0.0.1") as secure:
        found = secure.getpeercert()
        assert found
        return int(str(found["serialNumber"]), 16)


def test_a_client_that_trusts_the_authority_is_answered(server: Running, authority: Pair) -> None:
    trusted = read_ca(None, {"CAUDAL_CA": str(authority.certificate)})
    with gateways(server, trusted) as client:
        assert list(client.jobs()) == []
    url = f"https://127.0.0.1:{server.port}"
    headers = {"authorization": f"Bearer {ALICE}"}
    context = client_context(authority.certificate)
    with httpx.Client(base_url=url, headers=headers, verify=context) as http:
        assert http.put("/jobs/j", content=job_content()).status_code == 201
        with http.stream("GET", "/jobs/j/events") as stream:
            assert next(stream.iter_lines()) == "event: progress"


def test_a_certificate_that_is_not_trusted_is_told_at_once(server: Running, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    stranger = client_context(make_authority(other).certificate)
    for trusted in (None, stranger):
        with (
            gateways(server, trusted, seconds=3600.0) as client,
            pytest.raises(UsageError, match=r"is not trusted .*--ca FILE"),
        ):
            list(client.jobs())


def test_a_name_that_the_certificate_is_not_made_for_is_refused(
    server: Running, authority: Pair
) -> None:
    context = client_context(authority.certificate)
    with server.raw() as raw, pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        context.wrap_socket(raw, server_hostname="gateway.example")


def test_a_new_certificate_is_used_without_a_restart(
    tmp_path: Path, authority: Pair, pair: Pair, place: Place
) -> None:
    second = make_server(tmp_path, authority, "two", number=2002)
    certificate = Certificate(pair.certificate, pair.key)
    certificate._followed._every_seconds = 0.0
    with running(place, certificate) as server:
        assert serial(server, authority) == 1001
        shutil.copy(second.certificate, pair.certificate)
        assert serial(server, authority) == 1001, "half of a pair is not used"
        assert certificate.is_stale
        shutil.copy(second.key, pair.key)
        assert serial(server, authority) == 2002


def test_what_is_no_tls_is_closed(server: Running, authority: Pair) -> None:
    assert server.says(head("GET", "/jobs", connection="close"))[:4] != b"HTTP"
    assert serial(server, authority) == 1001


def test_old_versions_of_tls_are_refused(pair: Pair) -> None:
    context = Certificate(pair.certificate, pair.key).context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_handshakes_that_never_end_push_each_other_out(server: Running, authority: Pair) -> None:
    """They count from their first moment, and those who are served stay."""
    with ExitStack() as stack:
        silent = [stack.enter_context(server.raw()) for _ in range(40)]
        for one in silent[20:]:
            one.sendall(b"\x16\x03\x01")  # the first bytes of a handshake
        assert read_all(silent[0]) == b"", "the oldest was closed"
        assert serial(server, authority) == 1001


def test_a_handshake_has_its_time(pair: Pair, authority: Pair) -> None:
    with (
        Place(limits=GatewayLimits(handshake_seconds=0.2)) as place,
        running(place, Certificate(pair.certificate, pair.key)) as server,
        server.raw() as silent,
    ):
        assert read_all(silent) == b""
        assert serial(server, authority) == 1001


def test_a_request_in_the_first_packet_behind_the_handshake_is_answered(
    server: Running, authority: Pair
) -> None:
    context = client_context(authority.certificate)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", server.port), GUARD_SECONDS) as raw:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(outgoing.read())
                incoming.write(raw.recv(65_536))
        tls.write(head("GET", "/jobs", connection="close"))
        raw.sendall(outgoing.read())  # the end of the handshake and the request, in one packet
        incoming.write(raw.recv(65_536))
        found = b""
        while b"HTTP/1.1 200" not in found:
            try:
                found += tls.read(65_536)
            except ssl.SSLWantReadError:
                piece = raw.recv(65_536)
                assert piece
                incoming.write(piece)


def test_files_that_cannot_be_used_are_named(tmp_path: Path, pair: Pair, authority: Pair) -> None:
    other = make_server(tmp_path, authority, "other")
    for certificate, key in (
        (tmp_path / "none", pair.key),
        (pair.certificate, tmp_path / "none"),
        (pair.key, pair.key),
        (pair.certificate, other.key),
    ):
        with pytest.raises(UsageError, match="cannot be used"):
            Certificate(certificate, key)
    for ca in (tmp_path / "none", pair.key, Path(os.devnull)):
        with pytest.raises(UsageError, match="cannot be used"):
            client_context(ca)
