"""One owner is hostile and holds all it can; the other's requests succeed all the same.

Alice is the hostile one. Every test looks at a real server through real sockets.
"""

import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from tests.harness.gateway_place import (
    ALICE,
    BATCH,
    BERTA,
    CARLA,
    Place,
    batches,
    code_of,
    create,
    job_content,
    put_batch,
)
from tests.harness.gateway_server import Running, head, read_all, read_answer, running
from tests.harness.hand_clock import HandClock
from tests.harness.waiting import GUARD_SECONDS

from caudal.errors import UsageError
from caudal.formats.quotas import Allowances, Quota, Quotas, Share, complaints, read_quotas
from caudal.formats.replies import Receipt
from caudal.gateway.census import OwnerUsage, QuotaRoom
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.planner_process import PlanExcessError
from caudal.gateway.shares import usual_quotas
from caudal.gateway.tokens import Tokens
from caudal.jobs import execute
from caudal.jobs.ports import Bounds
from caudal.jobs.reconciler import Reconciler
from caudal.store.memory import MemoryStore

LIMITS = GatewayLimits(bodies_seconds=0.3)
URL = "/jobs/{job}/tables/people/batches/{number}"


@contextmanager
def client_of(server: Running, token: str = BERTA) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=GUARD_SECONDS) as client:
        yield client


@pytest.fixture
def place() -> Iterator[Place]:
    with Place(limits=LIMITS) as made:
        yield made


@pytest.fixture
def server(place: Place) -> Iterator[Running]:
    with running(place) as found:
        for token, job in ((ALICE, "a"), (BERTA, "b")):
            with client_of(found, token) as client:
                assert client.put(f"/jobs/{job}", content=job_content()).status_code == 201
        yield found


def berta_works(server: Running) -> None:
    """Everything that an honest client does."""
    with client_of(server) as client:
        assert client.get("/jobs/b").status_code == 200
        for number, data in enumerate(batches("people")):
            path = URL.format(job="b", number=number)
            answer = client.put(path, content=data, headers={"content-type": BATCH})
            assert answer.status_code in (200, 201), answer.text
        with client.stream("GET", "/jobs/b/events") as stream:
            assert next(stream.iter_lines()) == "event: progress"


def opened(server: Running, stack: ExitStack, start: bytes) -> socket.socket:
    connection = stack.enter_context(server.raw())
    connection.sendall(start)
    return connection


def refusal(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, str, str]:
    status, headers, body = answer
    assert int(headers["retry-after"]) >= 1
    error = json.loads(body)["error"]
    return status, error["code"], error["quota"]


def test_sockets_that_announce_much_leave_room_for_others(server: Running) -> None:
    start = head(
        "PUT", URL.format(job="a", number=0), content_length=str(64 << 20), content_type=BATCH,
        expect="100-continue",
    )  # fmt: skip
    with ExitStack() as stack:
        first = opened(server, stack, start)
        assert first.recv(100).startswith(b"HTTP/1.1 100")
        more = [opened(server, stack, start) for _ in range(5)]
        assert [refusal(read_answer(one)) for one in more] == [(429, "over_quota", "uploads")] * 5
        berta_works(server)


def test_slow_bodies_leave_places_for_others(server: Running) -> None:
    starts = [
        head("PUT", f"/jobs/slow{number}", content_length="100") + b"{" for number in range(64)
    ]
    with ExitStack() as stack:
        connections = [opened(server, stack, start) for start in starts]
        refused = [refusal(read_answer(one)) for one in connections[16:]]
        assert refused == [(429, "over_quota", "requests")] * 48
        berta_works(server)


def test_streams_leave_places_for_others(server: Running) -> None:
    start = head("GET", "/jobs/a/events")
    with ExitStack() as stack:
        connections = [opened(server, stack, start) for _ in range(80)]
        heads = [one.recv(12) for one in connections]
        assert heads[:64] == [b"HTTP/1.1 200"] * 64
        assert heads[64:] == [b"HTTP/1.1 429"] * 16
        berta_works(server)


def test_strangers_who_hold_connections_push_each_other_out() -> None:
    """Without a token, and with a known one that asks nothing."""
    with (
        Place(limits=GatewayLimits(connections=30, head_seconds=600.0)) as place,
        running(place) as server,
        client_of(server) as client,
        ExitStack() as stack,
    ):
        assert client.put("/jobs/b", content=job_content()).status_code == 201
        berta = opened(server, stack, head("GET", "/jobs/b/events", token=BERTA))
        assert berta.recv(12) == b"HTTP/1.1 200"
        idle = [opened(server, stack, b"GET /jobs HTTP/1.1\r\n") for _ in range(60)]
        assert read_all(idle[0]) == b"", "the oldest was closed"
        with client_of(server) as another:
            assert another.get("/jobs/b").status_code == 200
        with client_of(server) as another:
            assert another.delete("/jobs/b").status_code == 200
        told = b""
        while b"event: outcome" not in told:
            piece = berta.recv(65_536)
            assert piece, "who is served stays"
            told += piece


def test_one_owners_work_holds_half_of_the_threads_at_most(place: Place) -> None:
    """Each look at the store hangs for alice, and berta is answered."""
    hanging, held = threading.Event(), threading.Semaphore(0)
    lives_open = place.ports.job_runs.open

    def open_slowly(job: str) -> object:
        if job == "a":
            held.release()
            hanging.wait()
        return lives_open(job)

    place.ports.job_runs.open = open_slowly  # type: ignore[method-assign, assignment]
    with running(place) as server, ExitStack() as stack:
        with client_of(server) as client:
            assert client.put("/jobs/b", content=job_content()).status_code == 201
        try:
            for _ in range(16):
                opened(server, stack, head("GET", "/jobs/a"))
            for _ in range(LIMITS.threads // 2):
                assert held.acquire(timeout=GUARD_SECONDS)
            with client_of(server) as client:
                assert client.get("/jobs/b").status_code == 200
            assert not held.acquire(blocking=False)
        finally:
            hanging.set()


def test_running_jobs_are_counted_and_bounded(place: Place) -> None:
    place.quotas = Quotas(jobs=2, owners={"berta": Share(jobs=3)})
    alice, berta = place.client(), place.client(BERTA)
    for job in ("one", "two"):
        create(alice, job=job)
    answer = alice.put("/jobs/three", content=job_content())
    assert code_of(answer) == (429, "over_quota")
    assert answer.json()["error"]["quota"] == "jobs"
    assert int(answer.headers["retry-after"]) >= 1
    assert alice.put("/jobs/one", content=job_content()).status_code == 200, "the same again"
    for job in ("b1", "b2", "b3"):
        create(berta, job=job)
    assert code_of(berta.put("/jobs/b4", content=job_content())) == (429, "over_quota")
    place.service.census.round()
    assert place.service.census.used("alice", Quota.JOBS) == 2
    alice.delete("/jobs/two")
    place.service.census.round()
    create(alice, job="three")


def test_jobs_that_are_over_are_bounded_too(place: Place) -> None:
    """Every loop of every gateway walks over them."""
    place.quotas = Quotas(kept=2)
    client = place.client()
    for job in ("one", "two"):
        create(client, job=job)
        client.delete(f"/jobs/{job}")
    place.service.census.round()
    assert place.service.census.used("alice", Quota.JOBS) == 0
    answer = client.put("/jobs/three", content=job_content())
    assert code_of(answer) == (429, "over_quota")
    assert answer.json()["error"]["quota"] == "kept"
    create(place.client(BERTA), job="three")


def test_jobs_of_other_gateways_count_too(place: Place) -> None:
    place.quotas = Quotas(jobs=1)
    create(place.client())
    other = place.another("g2")
    other.census.round()
    assert code_of(place.client(service=other).put("/jobs/k", content=job_content()))[0] == 429


class Owner:
    """Asks gateways for as much as they let in, in any order of counts and requests."""

    def __init__(self, gateways: int, most: int) -> None:
        self.most, self.left = most, most
        self.store = MemoryStore()
        self.gateways = [OwnerUsage(self.store) for _ in range(gateways)]
        self.count(*range(gateways))

    def count(self, *numbers: int) -> None:
        for number in numbers:
            one = self.gateways[number]
            one._count = lambda: Counter({("alice", Quota.STORED): self.stored})  # type: ignore[method-assign]
            one.round()

    @property
    def stored(self) -> int:
        return self.most - self.left

    def take_all(self, number: int, item: int) -> None:
        one = self.gateways[number]
        amounts = {Quota.STORED: item}
        count = len(self.gateways)
        while one.room("alice", Quota.STORED, item, self.most, count) is QuotaRoom.FREE:
            with one.holding("alice", amounts) as hold:
                hold.lasts(amounts)
            self.left -= item


@pytest.mark.parametrize("gateways", [1, 2, 3, 7])
@pytest.mark.parametrize("item", [1, 10, 333, 1000])
def test_several_gateways_together_pass_a_quota_by_one_item_each(gateways: int, item: int) -> None:
    """No gateway counts three times while another counts once; the seed decides all the rest."""
    for seed in range(50):
        chance, owner = random.Random(seed), Owner(gateways, 1000)
        for _ in range(20):
            order = [number for number in range(gateways) for _ in range(chance.choice((1, 2)))]
            chance.shuffle(order)
            for number in order:
                if chance.random() < 0.7:
                    owner.take_all(chance.randrange(gateways), item)
                owner.count(number)
                owner.take_all(number, item)
        assert owner.left >= -(gateways - 1) * item
        for _ in range(60):
            owner.count(*range(gateways))
            owner.take_all(0, item)
        assert owner.left < item, "and in the end all of it can be used"


def test_however_unevenly_gateways_count_an_owner_has_less_than_half_more() -> None:
    owner = Owner(2, 100_000)
    for _ in range(100):
        owner.take_all(0, 1)
        owner.count(0)
    owner.take_all(1, 1)
    assert -25_001 <= owner.left < 0, "the worst that is known"


def test_a_gateway_that_has_never_counted_lets_nothing_in(place: Place) -> None:
    place.quotas = Quotas(jobs=9, gateways=2)
    answer = place.client().put("/jobs/j", content=job_content())
    assert code_of(answer) == (429, "busy")
    place.service.census.round()
    create(place.client())


def test_what_is_on_its_way_counts(place: Place) -> None:
    """Bodies that were let in side by side were each counted as if there were no other."""
    place.quotas = Quotas(stored="1MiB")
    with place.service.census.holding("alice", {Quota.STORED: 1 << 20}):
        create(place.client())
        assert put_batch(place.client(), "people", 0, batches("people")[0]) == 429
    assert put_batch(place.client(), "people", 0, batches("people")[0]) == 201


def test_stored_bytes_are_counted_and_bounded(place: Place) -> None:
    data = batches("people")
    client = place.client()
    create(client)
    place.service.census.round()
    before = place.service.census.used("alice", Quota.STORED)
    assert before > 0, "job.json counts"
    place.quotas = Quotas(stored=str(before + 4096 + 10))
    assert put_batch(client, "people", 0, data[0]) == 201
    assert place.service.census.used("alice", Quota.STORED) == before + 4096, "a block at least"
    answer = client.put(
        URL.format(job="j", number=1), content=data[1], headers={"content-type": BATCH}
    )
    assert code_of(answer) == (429, "over_quota")
    assert answer.json()["error"]["quota"] == "stored"
    assert put_batch(client, "people", 0, data[0]) == 200, "the same again takes nothing"
    place.service.census.round()
    assert place.service.census.used("alice", Quota.STORED) >= before + 4096
    create(place.client(BERTA), job="b")
    assert place.service.census.used("berta", Quota.STORED) == 0, "until the next count"


def test_what_is_used_is_shown_and_metrics_name_nobody(place: Place) -> None:
    place.quotas = Quotas(jobs=2)
    alice = place.client()
    create(alice)
    shown = alice.get("/quotas").json()["owners"]["alice"]
    assert shown["jobs"] == {"used": 1, "most": 2}
    assert shown["requests"] == {"used": 1, "most": 16}
    assert set(shown) == set(Quota)
    create(alice, job="two")
    alice.put("/jobs/three", content=job_content())
    metrics = alice.get("/metrics").text
    assert 'caudal_gateway_quota_refusals_total{quota="jobs"} 1.0' in metrics
    assert 'caudal_gateway_quota_fullest{quota="jobs"} 1.0' in metrics
    assert "alice" not in metrics
    everyone = place.client(CARLA).get("/quotas").json()["owners"]
    assert everyone["alice"]["jobs"]["used"] == 2


def test_a_huge_index_is_refused_before_it_is_decoded(place: Place) -> None:
    """63 MB of column names took a gateway's memory; the length is known before."""
    client = place.client()
    create(client)
    head_ = batches("people")[0]
    for names in (b'["a"]' + b" " * (3 << 20), b"[" + b'"ab",' * 700_000 + b'"c"]'):
        data = head_[:8] + len(names).to_bytes(4, "little") + head_[12:44] + names
        answer = client.put(
            URL.format(job="j", number=0), content=data, headers={"content-type": BATCH}
        )
        assert code_of(answer) == (400, "bad_request")
        assert "its index has more than" in answer.json()["error"]["message"]


def test_without_tokens_the_one_owner_has_all() -> None:
    usual = usual_quotas(GatewayLimits(), shared=False)
    assert usual[Quota.REQUESTS] == GatewayLimits.requests
    assert usual[Quota.STORED] is None
    with Place(tokens=Tokens()) as place:
        client = place.client(None)
        client.base_url = "http://localhost"
        shown = client.get("/quotas").json()["owners"]
        assert set(shown) == {"local"}
        assert shown["local"]["stored"] == {"used": None, "most": None}


def test_quotas_are_checked() -> None:
    quotas = Quotas(jobs=3, stored="1GB", owners={"alice": Share(uploads="1MiB")})
    found = Allowances.by(quotas, usual_quotas(GatewayLimits(), shared=True))
    assert found.of("alice", Quota.UPLOADS) == 1 << 20
    assert found.of("alice", Quota.JOBS) == 3
    assert found.of("berta", Quota.STORED) == 10**9
    assert found.of("berta", Quota.STREAMS) == 64
    assert complaints(quotas) == []
    wrong = Quotas(jobs=-1, stored="much", owners={"a b": Share(streams=-1)})
    told = " ".join(complaints(wrong))
    for piece in ("'much' is not a size", "[quotas.owners.a b] streams", "name of an owner"):
        assert piece in told


def test_a_file_of_quotas_may_hold_other_tables(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('name = "x"\n[hosts.a]\nport = 1\n[quotas]\njobs = 5\n')
    assert read_quotas(file).jobs == 5
    assert read_quotas(file).gateways == 2, "what a host has that does not say"
    file.write_text("[hosts.a]\ngateways = 3\n[hosts.b]\ngateways = 4\n")
    assert read_quotas(file).gateways == 7
    file.write_text("[quotas]\ngateways = 5\n[hosts.a]\n")
    assert read_quotas(file).gateways == 5
    file.write_text("[quotas]\njobs = 1\n")
    assert read_quotas(file).gateways == 1
    file.write_text("[hosts.a]\ngateways = 1\n[quotas]\njobs = 'ten'\n")
    with pytest.raises(UsageError, match=r'\[quotas\] jobs = "ten": must be a whole number'):
        read_quotas(file)
    for text in (
        "[quotas]\njobs = 'x'\n",
        "[quotas]\nroom = 1\n",
        "[quotas",
        "[quotas]\njobs=-1\n",
        "[quotas]\ngateways=0\n",
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match=r"cluster\.toml"):
            read_quotas(file)


def test_one_owner_cannot_fill_a_lane_for_others() -> None:
    """Alice, alone, has all of it. Berta is let in; and from then on each of them has half.

    No time passes: after ten seconds the reconciler would publish again what waits.
    """
    data = batches("people")
    with Place(bounds=Bounds(lane_limit=4 * len(data)), clock=HandClock()) as place:
        alice, berta = place.client(), place.client(BERTA)
        reconciler = Reconciler(place.ports)
        for job in "abcd":
            create(alice, job=job)
            for number, one in enumerate(data):
                assert put_batch(alice, "people", number, one, job) == 201
            reconciler.round()
        create(berta, job="e")
        assert put_batch(alice, "people", 0, data[0], "a") == 429, "the lane is full"
        assert put_batch(berta, "people", 0, data[0], "e") == 201
        assert put_batch(berta, "people", 1, data[1], "e") == 429, "a little only, while it is full"
        for _ in range(2 * len(data)):
            execute.take_turn(place.ports, place.consumer)
        reconciler.round()
        assert put_batch(alice, "people", 0, data[0], "d") == 429, "she has half of it"
        assert put_batch(berta, "people", 1, data[1], "e") == 201
        place.work()
        reconciler.round()
        assert put_batch(alice, "people", 0, data[0], "a") == 200


def test_an_owner_waits_after_a_plan_that_took_too_much(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exceed(*_: object) -> Receipt:
        raise PlanExcessError("planning these queries takes more than 5 s of CPU time")

    with monkeypatch.context() as patched:
        patched.setattr(place.service.gateway, "create", exceed)
        assert code_of(place.client().put("/jobs/j", content=job_content()))[0] == 422
    answer = place.client().put("/jobs/j", content=job_content())
    assert code_of(answer) == (429, "busy")
    assert int(answer.headers["retry-after"]) > 1
    assert "took too much to plan" in answer.json()["error"]["message"]
    create(place.client(BERTA), job="j")
