"""Jobs over HTTP: create, the same again, conflicts, owners, listings, the time of silence."""

import dataclasses

import msgspec
import pytest
from tests.harness.gateway_place import (
    BERTA,
    PEOPLE,
    REQUEST,
    Place,
    code_of,
    create,
    job_content,
    send,
)

from caudal.errors import StoreError, StoreFullError
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import Lane
from caudal.formats.outcomes import digest_of_digests
from caudal.jobs.ports import Bounds
from caudal.model import Query
from caudal.store.port import Store


def test_the_same_request_again_is_the_same_job(place: Place) -> None:
    client = place.client()
    first = client.put("/jobs/j", content=job_content())
    again = place.client(service=place.another("g2")).put("/jobs/j", content=job_content())
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() == {"run": "run0", "tables": ["people", "visits"]}


def test_other_content_under_the_same_id_is_a_conflict(place: Place) -> None:
    client = place.client()
    create(client)
    other = msgspec.structs.replace(REQUEST, queries=("adults",))
    assert code_of(client.put("/jobs/j", content=job_content(other))) == (409, "conflict")


def test_a_job_exists_only_for_its_token(place: Place) -> None:
    create(place.client())
    berta = place.client(BERTA)
    for answer in (
        berta.put("/jobs/j", content=job_content()),
        berta.get("/jobs/j"),
        berta.delete("/jobs/j"),
        berta.get("/jobs/j/results/adults"),
        berta.get("/jobs/j/rejects"),
        berta.get("/jobs/j/events"),
        berta.get("/jobs/j/results/adults/preview"),
        berta.get("/jobs/j/tables/people/batches/0"),
        berta.put("/jobs/j/tables/people/end", json={"batches": 0, "bytes": 0, "digest": ""}),
    ):
        assert code_of(answer) == (404, "no_job")
    assert berta.get("/jobs").json() == {"jobs": [], "next": None}
    assert place.client().get("/jobs/j").json()["outcome"] is None


@pytest.mark.parametrize("token", [None, "", "alice", "x" * 5000])
def test_nobody_asks_without_a_known_token(place: Place, token: str | None) -> None:
    client = place.client(token)
    answer = client.get("/jobs")
    assert code_of(answer) == (401, "no_token")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/healthz").status_code == 200


def test_what_cannot_be_planned_is_422_and_no_job(place: Place) -> None:
    query = Query("q", "", "SELECT nothing FROM nowhere", "q.sql")
    text = msgspec.structs.replace(REQUEST.application, queries=(query,))
    answer = place.client().put("/jobs/j", content=job_content(Request(text)))
    assert code_of(answer) == (422, "cannot_plan")
    assert "q.sql" in answer.json()["error"]["message"]
    assert code_of(place.client().get("/jobs/j")) == (404, "no_job")


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "\0",
        "SELECT 1; SELECT 2",
        "COPY people TO '/tmp/stolen.csv'",
        "ATTACH '/tmp/other.db'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SET threads = 64",
        "EXPLAIN SELECT 1",
        "SELECT $1",
        "SELECT x'",
        "(" * 5000,
        "SELECT " + "NOT " * 5000 + "TRUE",
        "SELECT [" + "[" * 3000,
        "SELECT " + "(" * 2000 + "1" + ")" * 2000,
        "SELECT * FROM people" + " JOIN people USING (name)" * 300,
    ],
    ids=lambda sql: sql[:30],
)
@pytest.mark.parametrize("where", ["query", "table"])
def test_no_text_meets_a_bug(place: Place, sql: str, where: str) -> None:
    text = REQUEST.application
    if where == "query":
        text = msgspec.structs.replace(text, queries=(Query("q", "", sql, "q.sql"),))
    else:
        table = dataclasses.replace(text.tables[0], sql=sql)
        text = msgspec.structs.replace(text, tables=(table, text.tables[1]))
    answer = place.client().put("/jobs/j", content=job_content(Request(text)))
    assert code_of(answer) in ((400, "bad_request"), (422, "cannot_plan"))


def test_names_must_differ_and_columns_need_one(place: Place) -> None:
    text = REQUEST.application
    people, visits = text.tables
    adults, places = text.queries
    wrong = (
        {"tables": (people, dataclasses.replace(visits, name="PEOPLE"))},
        {"queries": (adults, dataclasses.replace(places, name="Adults"))},
        {"tables": (dataclasses.replace(people, columns=("name", "")), visits)},
        {"queries": (dataclasses.replace(adults, name="rejects"),)},
        {"queries": (dataclasses.replace(adults, name="a/b"),)},
    )
    for change in wrong:
        request = Request(msgspec.structs.replace(text, **change))
        answer = place.client().put("/jobs/j", content=job_content(request))
        assert code_of(answer)[0] in (400, 422), change


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"application": 3}', b"\xff\xfe", b"[" * 100_000],
    ids=["empty", "half", "array", "null", "wrong type", "no text", "deep"],
)
def test_rubbish_instead_of_a_request_is_400(place: Place, content: bytes) -> None:
    assert code_of(place.client().put("/jobs/j", content=content)) == (400, "bad_request")


def test_names_that_are_no_ids_are_400(place: Place) -> None:
    for name in ("a b", "ä", "x" * 65, "a.b", "%00"):
        answer = place.client().put(f"/jobs/{name}", content=job_content())
        assert code_of(answer) == (400, "bad_request"), name


def test_a_listing_goes_on_where_it_ended(place: Place) -> None:
    client = place.client()
    for name in ("a", "b", "c"):
        create(client, job=name)
    create(place.client(BERTA), job="bb")
    assert client.delete("/jobs/b").json()["state"] == "cancelled"
    first = client.get("/jobs?limit=2").json()
    rest = client.get("/jobs", params={"limit": 2, "after": first["next"]}).json()
    assert (len(first["jobs"]), len(rest["jobs"]), rest["next"]) == (2, 1, None)
    found = first["jobs"] + rest["jobs"]
    states = {"a": "running", "b": "cancelled", "c": "running"}
    assert {one["id"]: one["state"] for one in found} == states
    assert {one["application"] for one in found} == {"tiny"}
    for wrong in ("limit=0", "limit=x", "limit=1001", "after=a/b", "limit=²"):
        assert code_of(client.get(f"/jobs?{wrong}"))[0] == 400


def test_a_status_says_what_a_client_needs(place: Place) -> None:
    client = place.client()
    create(client)
    send(client, "people")
    place.work()
    status = client.get("/jobs/j").json()
    assert status["tables"]["people"] == {"batches": 3, "arrived": 3, "mapped": 3}
    assert status["results"] == ["adults"]
    assert status["queries"] == ["adults", "places"]
    assert status["previews"] == ["adults"]
    assert status["reads"]["places"] == ["people", "visits"]
    assert status["options"]["batch_bytes"] == 30


def test_a_job_is_cancelled_once(place: Place) -> None:
    client = place.client()
    create(client)
    first, again = client.delete("/jobs/j").json(), client.delete("/jobs/j").json()
    assert first == again
    assert first["state"] == "cancelled"
    answer = client.get("/jobs/j/results/adults")
    assert code_of(answer) == (410, "ended")
    assert answer.json()["error"]["outcome"] == first


def test_only_a_job_that_has_ended_is_deleted(place: Place) -> None:
    client = place.client()
    create(client)
    assert code_of(client.delete("/jobs/j/results")) == (409, "conflict")
    client.delete("/jobs/j")
    assert code_of(place.client(BERTA).delete("/jobs/j/results")) == (404, "no_job")
    assert client.delete("/jobs/j/results").json()["state"] == "cancelled"
    assert client.get("/jobs").json()["jobs"] == []
    assert code_of(client.delete("/jobs/j/results")) == (404, "no_job")


def test_the_gateway_grants_silence_and_the_request_stays_the_same() -> None:
    with Place(bounds=Bounds(silence_seconds=(5.0, 60.0))) as place:
        client = place.client()
        create(client)
        options = client.get("/jobs/j").json()["options"]
        assert options["silent_seconds"] == 60.0
        resumed = msgspec.structs.replace(
            REQUEST, options=msgspec.structs.replace(REQUEST.options, silent_seconds=60.0)
        )
        for request in (REQUEST, resumed):
            assert client.put("/jobs/j", content=job_content(request)).status_code == 200


def test_a_store_that_is_away_is_503_and_says_when_to_come_again(place: Place) -> None:
    class Away:
        def __getattr__(self, name: str) -> object:
            raise StoreError("the store is away")

    ports = dataclasses.replace(place.ports, store=Away())  # type: ignore[arg-type]
    service = place.another("g2")
    object.__setattr__(service, "ports", ports)
    answer = place.client(service=service).get("/readyz")
    assert code_of(answer) == (503, "unavailable")
    assert answer.headers["retry-after"]


def test_a_full_disk_is_logged_now_and_then(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    class Full:
        def __init__(self, store: Store) -> None:
            self._store = store

        def create(self, key: str, data: bytes) -> None:
            raise StoreFullError(f"cannot create {key}: No space left on device")

        def __getattr__(self, name: str) -> object:
            return getattr(self._store, name)

    place.ports = dataclasses.replace(place.ports, store=Full(place.ports.store))  # type: ignore[arg-type]
    client = place.client(service=place.another("g2"))
    for job in ("j1", "j2"):
        answer = client.put(f"/jobs/{job}", content=job_content(REQUEST))
        assert code_of(answer) == (503, "store_full")
    events = [one.getMessage() for one in caplog.records if "refuses" in one.getMessage()]
    assert events == ["the store or the broker refuses requests"]
    for path in ("/readyz", "/jobs"):  # what is there can be read
        assert client.get(path).status_code == 200, path


def test_a_client_cannot_name_a_folder_of_the_servers_as_its_model(place: Place) -> None:
    bounds = dataclasses.replace(place.ports.bounds, sentiments=("lexicon",))
    place.ports = dataclasses.replace(place.ports, bounds=bounds)
    text = msgspec.structs.replace(REQUEST.application, sentiment="transformers:/etc")
    answer = place.client(service=place.another("g2")).put(
        "/jobs/j", content=job_content(Request(text))
    )
    assert answer.status_code == 400
    assert "not offered here" in answer.json()["error"]["message"]


def test_a_limit_of_any_length_is_refused(place: Place) -> None:
    """One with thousands of digits was a bug, since Python makes no number of it."""
    client = place.client()
    for limit in ("000000001" + "9" * 5_000, "0" * 9 + "1", "1001", "0", "-1", "\u0661"):
        answer = client.get("/jobs", params={"limit": limit})
        assert code_of(answer) == (400, "bad_request"), limit[:20]
    assert client.get("/jobs", params={"limit": "1000"}).status_code == 200


def groups(count: int, partitions: int) -> Request:
    """Queries with a fold each."""
    queries = tuple(
        Query(
            f"q{n}", "", f"SELECT name, max(age) AS m FROM people WHERE age > {n} GROUP BY 1", "q"
        )
        for n in range(count)
    )
    return Request(Text("t", "", (PEOPLE,), queries), options=Options(partitions=partitions))


def test_one_small_request_cannot_bury_the_tasks_of_others(place: Place) -> None:
    """Two folds of 9,999 partitions, and an empty table that makes all of them ready at once."""
    client = place.client()
    answer = client.put("/jobs/j", content=job_content(groups(2, 9_999)))
    assert code_of(answer) == (400, "bad_request")
    assert "19998 fold tasks are too many" in answer.json()["error"]["message"]
    end = {"batches": 0, "bytes": 0, "digest": digest_of_digests([])}
    for job, partitions, lane in (("large", 300, Lane.SLOW), ("small", 200, Lane.FOLD)):
        before = place.broker.depths()[lane]
        create(client, groups(2, partitions), job)
        assert client.put(f"/jobs/{job}/tables/people/end", json=end).status_code == 201
        assert place.broker.depths()[lane] - before >= 2 * partitions
