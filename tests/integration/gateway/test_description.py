"""The OpenAPI description is true: every route is in it, and whatever it allows is answered so.

The fuzzing is bounded and the same every time; `derandomize=False` and more examples look further.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from starlette.routing import Route
from tests.harness.gateway_place import ALICE, BATCH, Place, batches, create, put_batch, send

from caudal.gateway.application import make_application
from caudal.gateway.openapi import PATH, describe
from caudal.gateway.operations import Operation, Parameter, Room
from caudal.gateway.routes import OPERATIONS

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.allow_header_conformance,
]
KNOWN = {"job": "j", "table": "people", "query": "adults"}

schemathesis.openapi.media_type(BATCH, st.binary() | st.sampled_from(batches("people")))
EXAMPLES = 15  # of each kind per operation


@pytest.fixture(scope="module")
def served() -> Iterator[Place]:
    """A job that is half sent."""
    with Place() as place:
        client = place.client()
        create(client)
        send(client, "people")
        put_batch(client, "visits", 0, batches("visits")[0])
        place.work()
        yield place


@pytest.fixture(scope="module")
def description(served: Place) -> Any:
    found = schemathesis.openapi.from_asgi(PATH, make_application(served.service))

    @found.hook("map_path_parameters")
    def often_known(context: Any, parameters: dict[str, Any] | None) -> dict[str, Any] | None:
        """Half of the names are those of the job that exists."""
        del context
        for name, known in KNOWN.items():
            if parameters and len(str(parameters.get(name, "?"))) % 2 == 0:
                parameters[name] = known
        return parameters

    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        pytest.param(one, mode, id=f"{one.method} {one.path} {mode.value}")
        for one in OPERATIONS
        for mode in GenerationMode
        if mode is GenerationMode.POSITIVE or "{" in one.path or one.parameters
    ],
)
def test_whatever_is_asked_is_answered_as_described(
    served: Place, description: Any, operation: Operation, mode: GenerationMode
) -> None:
    """Positive: what the description allows. Negative: what it does not."""
    served.stopping = operation.room is Room.STREAM  # so that streams end at once
    cases = description[operation.path][operation.method].as_strategy(generation_mode=mode)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def answer(case: Any) -> None:
        response = case.call(headers={"authorization": f"Bearer {ALICE}"})
        case.validate_response(response, checks=CHECKS)

    answer()


def test_every_route_is_described(served: Place) -> None:
    described = {
        (method.upper(), path)
        for path, methods in describe(OPERATIONS)["paths"].items()
        for method in methods
    }
    routes = make_application(served.service).routes
    found = {
        (method, route.path)
        for route in routes
        if isinstance(route, Route)
        for method in route.methods or ()
    }
    assert found - {("GET", PATH)} == described


def test_the_page_for_people_names_every_operation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats" / "http.md").read_text()
    short = {"job": "{J}", "table": "{T}", "query": "{Q}", "number": "{N}", "file": "{F}"}
    short |= {"dataset": "{D}", "reader": "{R}"}
    for one in OPERATIONS:
        path = re.sub(r"\{(\w+)\}", lambda found: short[found[1]], one.path)
        assert re.search(rf"`{one.method} {re.escape(path)}[`?]", page), path
        for status in one.refusals:
            assert re.search(rf"^\| .*\b{status}\b", page, re.MULTILINE), status


def test_each_operation_has_a_name_of_its_own() -> None:
    paths = describe(OPERATIONS)["paths"].values()
    names = [one["operationId"] for methods in paths for one in methods.values()]
    assert len(names) == len(set(names)) == len(OPERATIONS)


NUMBERS = [
    (one, given)
    for one in OPERATIONS
    for given in one.parameters
    if given.schema["type"] in ("integer", "number") or "[0-9]" in given.schema.get("pattern", "")
]


@pytest.mark.parametrize("text", ["000000001" + "9" * 400, "9" * 5_000, "0" * 5_000 + "1"])
@pytest.mark.parametrize(
    ("operation", "given_"), [pytest.param(*both, id=both[1].name) for both in NUMBERS]
)
def test_numbers_of_any_length_are_bounded(
    served: Place, operation: Operation, given_: Parameter, text: str
) -> None:
    """Python makes no number of thousands of digits, and no time of hundreds."""
    served.stopping = True  # so that streams end at once
    path = re.sub(r"\{(\w+)\}", lambda found: KNOWN.get(found[1], "1"), operation.path)
    in_header = given_.place == "header"
    answer = served.client().request(
        operation.method,
        path,
        params={} if in_header else {given_.name: text},
        headers={given_.name: text} if in_header else {},
    )
    assert answer.status_code < 500 or answer.json()["error"]["code"] == "unavailable"
