"""Tokens: the file, whose they are, what they allow, and where one may listen without them."""

from pathlib import Path

import pytest
from tests.harness.gateway_place import (
    ALICE,
    BERTA,
    BOTH,
    CARLA,
    DORA,
    Place,
    batches,
    code_of,
    create,
    known,
    put_batch,
    send,
    write_token,
)

from caudal.errors import UsageError
from caudal.formats.tokens import (
    Right,
    TokenEntry,
    check_strength,
    decode,
    digest_of,
    new_token,
)
from caudal.gateway.rates import Rates
from caudal.gateway.refusals import Refusal
from caudal.gateway.tokens import EVERYBODY, Tokens, check_host
from caudal.process.tokens import Known, changing, key_path, read_bearer, read_known
from caudal.process.watched_files import Followed


def test_the_name_of_a_line_is_the_owner(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    write_token(file, "alice", ALICE)
    write_token(file, "berta", BERTA)
    tokens = Tokens.of_file(file)
    assert tokens.names() == ("alice", "berta")
    assert tokens.caller(f"Bearer {ALICE}").owner == "alice"
    assert tokens.caller(f"bearer   {BERTA}").owner == "berta"
    for wrong in (
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {ALICE}",
        "Bearer alice",
        ALICE,
        "Bearer é",
    ):
        with pytest.raises(Refusal) as caught:
            tokens.caller(wrong)
        assert (caught.value.status, caught.value.code) == (401, "no_token")


def test_the_file_holds_no_token_and_its_digests_need_the_key(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for file in (one, other):
        write_token(file, "alice", ALICE)
    assert ALICE not in one.read_text() + repr(read_known(one))
    assert read_known(one).entries[0].digest != read_known(other).entries[0].digest
    assert read_known(one).key != read_known(other).key


def test_both_files_are_for_their_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    write_token(file, "alice", ALICE)
    assert [path.stat().st_mode & 0o777 for path in (file, key_path(file))] == [0o600] * 2
    key_path(file).chmod(0o604)
    with pytest.raises(UsageError, match="chmod 600"):
        read_known(file)


def test_two_tokens_of_one_owner_are_one_owner() -> None:
    other = new_token()
    more = TokenEntry("alice", frozenset({Right.READ}), None, digest_of(other, known().key))
    tokens = Tokens(lambda: known(more))
    assert tokens.caller(f"Bearer {ALICE}").owner == tokens.caller(f"Bearer {other}").owner
    assert tokens.caller(f"Bearer {other}").rights == {Right.READ}


def test_a_token_ends_when_its_time_is_over() -> None:
    entry = TokenEntry("alice", BOTH, 1000.0, digest_of(ALICE, b"k"))
    now = [999.0]
    tokens = Tokens(lambda: Known((entry,), b"k"), now=lambda: now[0])
    assert tokens.caller(f"Bearer {ALICE}").owner == "alice"
    now[0] = 1000.0
    with pytest.raises(Refusal, match="has expired"):
        tokens.caller(f"Bearer {ALICE}")


def test_a_change_of_the_file_is_followed_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    file, time = tmp_path / "tokens", [0.0]
    write_token(file, "alice", ALICE)
    followed = Followed([file], lambda: read_known(file), elapsed=lambda: time[0])
    tokens = Tokens(followed.now)
    write_token(file, "berta", BERTA)
    assert tokens.names() == ("alice",), "one look a second"
    time[0] += 1.0
    assert tokens.names() == ("alice", "berta")
    good = file.read_text()
    file.write_text("alice read never nothing\n")
    time[0] += 1.0
    assert tokens.names() == ("alice", "berta")
    assert followed.is_stale is True
    file.write_text(good)
    time[0] += 1.0
    assert tokens.names() == ("alice", "berta")
    assert str(followed.is_stale) == "False"
    with changing(file) as entries:
        entries.clear()
    time[0] += 1.0
    assert tokens.names() == (), "all were revoked"


def test_an_older_file_is_named_as_such_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    for content in (
        "alice:secret-of-alice\n",
        "secret-of-alice\n",
        "# x\n\nalice: secret-of-alice\n",
    ):
        file.write_text(content)
        with pytest.raises(UsageError, match="caudal token new NAME") as caught:
            Tokens.of_file(file)
        assert "secret" not in str(caught.value)
        assert "line" in str(caught.value)


DIGEST = "0" * 64


@pytest.mark.parametrize(
    ("line", "match"),
    [
        (f"alice read never {DIGEST[1:]}", "line 1"),
        (f"alice write never {DIGEST}", "'write' is not a right"),
        (f"alice read,, never {DIGEST}", "'' is not a right"),
        (f"alice read tomorrow {DIGEST}", "2027-01-31"),
        (f"al/ice read never {DIGEST}", "name of an owner"),
        (f"local read never {DIGEST}", "name of an owner"),
        (f"{'a' * 65} read never {DIGEST}", "name of an owner"),
    ],
)
def test_a_wrong_line_is_named(line: str, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        decode(line, "file")


def test_weak_tokens_are_refused() -> None:
    for weak in ("", "secret", "x" * 100, "12345678901234567890123", "abcabcabcabcabcabcabcabcabc"):
        with pytest.raises(UsageError, match="too weak"):
            check_strength(weak, "here")
    for _ in range(100):
        check_strength(new_token(), "here")
    check_strength("0123456789abcdef0123456789abcdef", "here")


def test_a_clients_file_is_not_a_gateways(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    write_token(file, "alice", ALICE)
    with pytest.raises(UsageError, match="token file of gateways"):
        read_bearer(file)
    file.write_text(f"# mine\nalice:{ALICE}\n")
    assert read_bearer(file) == ALICE


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    huge.write_bytes(b"#" * (2 << 20))
    for path in (tmp_path / "none", tmp_path, huge):
        with pytest.raises(UsageError, match=r"cannot be read|too large"):
            Tokens.of_file(path)
    file = tmp_path / "tokens"
    write_token(file, "alice", ALICE)
    key_path(file).unlink()
    with pytest.raises(UsageError, match=r"tokens\.key"):
        Tokens.of_file(file)
    with pytest.raises(UsageError, match=r"tokens\.key"), changing(file):
        pass


def _fail_while_changing(file: Path) -> None:
    with changing(file) as entries:
        entries.clear()
        raise ZeroDivisionError


def test_what_fails_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    write_token(file, "alice", ALICE)
    before = file.read_text()
    with pytest.raises(ZeroDivisionError):
        _fail_while_changing(file)
    assert file.read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".tokens.lock",
        "tokens",
        "tokens.key",
    ]


def test_without_tokens_only_this_machine_is_served() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.9.9.9"):
        check_host(host, Tokens())
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "", "localhost.example.org"):
        with pytest.raises(UsageError, match="--token-file"):
            check_host(host, Tokens())
        check_host(host, Tokens(known))
    assert Tokens().caller(None) is EVERYBODY


def test_who_may_only_read_changes_nothing(place: Place) -> None:
    dora = place.client(DORA)
    for method, path in (
        ("PUT", "/jobs/k"),
        ("DELETE", "/jobs/k"),
        ("PUT", "/jobs/k/tables/people/batches/0"),
        ("PUT", "/jobs/k/tables/people/end"),
    ):
        assert code_of(dora.request(method, path)) == (403, "not_allowed"), path
    assert dora.get("/jobs").status_code == 200
    assert code_of(dora.get("/jobs/k")) == (404, "no_job")


def test_an_admin_looks_at_and_ends_jobs_of_others_and_sends_nothing(place: Place) -> None:
    alice, carla = place.client(), place.client(CARLA)
    create(alice)
    send(alice, "people")
    place.work()
    assert carla.get("/jobs/j").status_code == 200
    assert carla.get("/jobs/j/results/adults").status_code == 200
    assert carla.get("/jobs").json()["jobs"] == []
    assert [one["id"] for one in carla.get("/jobs?owner=alice").json()["jobs"]] == ["j"]
    assert code_of(carla.get("/jobs/none")) == (404, "no_job")
    assert code_of(carla.put("/jobs/k", content=b"{}")) == (403, "not_allowed")
    data = batches("visits")[0]
    assert put_batch(carla, "visits", 0, data) == 403
    assert carla.delete("/jobs/j").json()["state"] == "cancelled"


def test_others_are_told_nothing(place: Place) -> None:
    create(place.client())
    berta = place.client(BERTA)
    assert code_of(berta.get("/jobs/j")) == (404, "no_job")
    assert code_of(berta.get("/jobs?owner=alice")) == (403, "not_allowed")
    assert list(berta.get("/quotas").json()["owners"]) == ["berta"]
    assert list(place.client(CARLA).get("/quotas").json()["owners"]) == [
        "alice", "berta", "carla", "dora",
    ]  # fmt: skip


def test_a_bucket_fills_steadily() -> None:
    rates = Rates(per_second=2.0, burst=4.0)
    assert [rates.take("a", 0.0) for _ in range(5)] == [0, 0, 0, 0, 1]
    assert rates.take("b", 0.0) == 0
    assert [rates.take("a", 1.0) for _ in range(3)] == [0, 0, 1]
    assert [rates.take("a", 1000.0) for _ in range(5)] == [0, 0, 0, 0, 1]
    assert rates.take("a", 999.0) == 1, "a clock that jumps back gives nothing"
