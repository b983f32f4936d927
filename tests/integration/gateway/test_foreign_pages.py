"""Pages of other sites change nothing: their browsers say where a request comes from."""

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.harness.gateway_place import ALICE, Answer, Place, code_of, create
from tests.harness.told_cluster import ToldGateways

from caudal.gateway.operations import Operation
from caudal.gateway.peers import KnownCluster
from caudal.gateway.routes import OPERATIONS
from caudal.gateway.tokens import Tokens

CHANGING = [one for one in OPERATIONS if one.method != "GET"]
HOST = "127.0.0.1:8499"
FOREIGN = [
    {"origin": "http://evil.example"},
    {"origin": "http://evil.example", "sec-fetch-site": "cross-site"},
    {"origin": "http://127.0.0.1:3000", "sec-fetch-site": "same-site"},  # another program here
    {"origin": "http://127.0.0.1"},
    {"origin": "http://127.0.0.1:8499.evil.example"},
    {"origin": "null"},  # a frame without rights, a file
    {"origin": ""},
    {"sec-fetch-site": "cross-site"},
    {"origin": f"http://{HOST}", "sec-fetch-site": "cross-site"},  # of a page without TLS
]
OWN: list[dict[str, str]] = [
    {},  # a program
    {"origin": f"http://{HOST}"},
    {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"},
    {"origin": f"https://{HOST}"},  # a balancer ends TLS
    {"origin": "https://caudal.example", "sec-fetch-site": "same-origin"},  # and changes Host
]
PEERS = [
    {"origin": "http://127.0.0.1:8422", "sec-fetch-site": "same-site"},
    {"origin": "http://box-2.lan:8421", "sec-fetch-site": "cross-site"},
]


@pytest.fixture(scope="module")
def open_place() -> Iterator[Place]:
    """A gateway without tokens, in a cluster of several."""
    with Place(tokens=Tokens()) as made:
        object.__setattr__(made.service, "peers", KnownCluster(ToldGateways(made)))
        made.service.peers.look()
        yield made


def client_of(place: Place, token: str | None = None) -> TestClient:
    client = place.client(token)
    client.base_url = f"http://{HOST}"
    return client


def sent(client: TestClient, operation: Operation, headers: dict[str, str]) -> Answer:
    """A request as a page can send it without being asked for permission: with no type."""
    path = re.sub(r"\{\w+\}", "1", operation.path)
    return client.request(operation.method, path, content=b"{}", headers=headers)


def test_strikes_and_questions_are_among_them() -> None:
    assert {(one.method, one.path) for one in CHANGING} >= {
        ("POST", "/cluster/strikes"),
        ("POST", "/jobs/{job}/sql"),
        ("DELETE", "/datasets/{dataset}"),
    }


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("operation", CHANGING, ids=lambda one: f"{one.method} {one.path}")
def test_a_page_of_another_site_changes_nothing(
    open_place: Place, operation: Operation, headers: dict[str, str]
) -> None:
    answer = sent(client_of(open_place), operation, headers)
    assert code_of(answer) == (403, "wrong_origin")


@pytest.mark.parametrize("headers", [*OWN, *PEERS], ids=str)
@pytest.mark.parametrize("operation", CHANGING, ids=lambda one: f"{one.method} {one.path}")
def test_programs_and_pages_of_the_cluster_are_answered(
    open_place: Place, operation: Operation, headers: dict[str, str]
) -> None:
    answer = sent(client_of(open_place), operation, headers)
    assert answer.status_code in (400, 404, 409, 415), answer.json()


def test_a_page_of_another_site_cancels_no_job() -> None:
    with Place(tokens=Tokens()) as place:
        client = client_of(place)
        create(client)
        answer = client.delete("/jobs/j", headers={"origin": "http://evil.example"})
        assert code_of(answer) == (403, "wrong_origin")
        assert client.get("/jobs/j").json()["outcome"] is None
        assert client.delete("/jobs/j", headers={"origin": f"http://{HOST}"}).status_code == 200


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_reading_is_not_refused(open_place: Place, headers: dict[str, str]) -> None:
    """The browser keeps such an answer from the page: it has no permission."""
    answer = client_of(open_place).get("/jobs", headers=headers)
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


def test_a_token_does_not_help(place: Place) -> None:
    answer = client_of(place, ALICE).delete("/jobs/j", headers={"origin": "http://evil.example"})
    assert code_of(answer) == (403, "wrong_origin")
