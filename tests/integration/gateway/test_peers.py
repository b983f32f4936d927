"""A page that goes on with another gateway: which origins are told, and which are permitted."""

import pytest
from tests.harness.gateway_place import ALICE, Place
from tests.harness.told_cluster import ToldGateways

from caudal.gateway.peers import KnownCluster

ASKS = {"access-control-request-method": "GET", "access-control-request-headers": "authorization"}


@pytest.fixture
def peers(place: Place) -> Place:
    object.__setattr__(place.service, "peers", KnownCluster(ToldGateways(place)))
    return place


def test_the_page_is_told_the_gateways_and_may_ask_only_them(peers: Place) -> None:
    answer = peers.client(token=None).get("/")
    told = "http://127.0.0.1:8421 http://127.0.0.1:8422 http://box-2.lan:8421"
    assert f'data-gateways="{told}"' in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.endswith(f"; connect-src 'self' {told}")
    assert "unsafe" not in policy
    assert "access-control-allow-origin" not in answer.headers
    worker = peers.client(token=None).get("/page/digest.js").headers["content-security-policy"]
    assert worker == "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'"


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:8421", "http://localhost:8422", "http://box-2.lan:8421"]
)
def test_pages_of_the_cluster_are_permitted(peers: Place, origin: str) -> None:
    client = peers.client(ALICE)
    client.get("/cluster")  # a look at the medics
    asked = peers.client(token=None).options("/jobs", headers={"origin": origin, **ASKS})
    assert asked.status_code == 204
    assert asked.headers["access-control-allow-origin"] == origin
    assert "authorization" in asked.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in asked.headers
    answer = client.get("/jobs", headers={"origin": origin})
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["vary"] == "origin"
    refused = client.get("/jobs/none", headers={"origin": origin})  # the page reads why
    assert refused.headers["access-control-allow-origin"] == origin
    assert refused.headers["access-control-expose-headers"] == "retry-after"


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://127.0.0.1:8421",  # another scheme
        "http://127.0.0.1:9999",
        "http://127.0.0.1:8421.evil.example",
        "http://box-2.lan:8422",
        "http://0.0.0.0:1",
        "null",
        "",
    ],
)
def test_no_other_page_is_permitted(peers: Place, origin: str) -> None:
    client = peers.client(ALICE)
    client.get("/cluster")
    asked = peers.client(token=None).options("/jobs", headers={"origin": origin, **ASKS})
    assert asked.status_code == 405
    answer = client.get("/jobs", headers={"origin": origin})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert not [name for name in asked.headers if name.startswith("access-control")]


def test_nothing_is_permitted_without_medics(place: Place) -> None:
    answer = place.client(token=None).get("/", headers={"origin": "http://127.0.0.1:8421"})
    assert 'data-gateways=""' in answer.text
    assert "access-control-allow-origin" not in answer.headers
