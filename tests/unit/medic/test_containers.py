"""What the answers of a Docker engine mean, and the files from which containers are made."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from caudal.cluster.roster import MemberKind, roster
from caudal.cluster.settings import parse
from caudal.medic.containers import (
    Condition,
    copied,
    happened,
    inspected,
    is_being_replaced,
    pattern_for,
    renewed,
    seconds_of,
    told,
    with_event,
)
from caudal.process.records import ProcessRecord

ROOT = Path(__file__).parents[3]
RECORD = ProcessRecord(4, 7, 123)


@pytest.mark.parametrize(
    ("condition", "gone"),
    [
        (Condition("running", 50.0), False),
        (Condition("running", 150.0), False),
        (Condition("exited", 150.0), True),
        (Condition("exited", 50.0), False),  # the end of an earlier incarnation
        (Condition("created", 150.0), True),  # made anew and never started
        (None, True),
    ],
)
def test_gone_means_an_end_after_the_record(condition: Condition | None, gone: bool) -> None:
    record = told("worker-1", RECORD, 100.0, condition, 130.0)
    assert (record.incarnation, record.age, record.gone) == (4, 30.0, gone)


def test_a_paused_container_is_stopped_and_not_gone() -> None:
    record = told("worker-1", RECORD, 100.0, Condition("paused", 50.0), 130.0)
    assert (record.gone, record.stopped) == (False, True)


def state(status: str, **more: str) -> dict[str, Any]:
    times = {"StartedAt": "2026-11-16T12:00:01.123456789Z", "FinishedAt": "0001-01-01T00:00:00Z"}
    return {"Created": "2026-11-16T12:00:00Z", "State": {"Status": status, **times, **more}}


def test_the_time_of_a_condition_is_that_of_its_start_end_or_creation() -> None:
    noon = seconds_of("2026-11-16T12:00:00Z")
    assert inspected(state("running")) == Condition("running", noon + 1.123456)
    assert inspected(state("created")) == Condition("created", noon)
    ended = state("exited", FinishedAt="2026-11-16T12:00:02Z")
    assert inspected(ended) == Condition("exited", noon + 2)


def event(action: str) -> dict[str, Any]:
    return {
        "Action": action,
        "Actor": {"Attributes": {"name": "caudal-worker-1"}},
        "timeNano": 5_500_000_000,
    }


def test_events_change_conditions() -> None:
    assert happened(event("die")) == ("caudal-worker-1", Condition("exited", 5.5))
    assert happened(event("unpause")) == ("caudal-worker-1", Condition("running", 5.5))
    assert happened(event("destroy")) == ("caudal-worker-1", Condition("removed", 5.5))
    assert happened(event("exec_start: python")) is None


def test_the_removal_of_a_container_does_not_hide_its_successor() -> None:
    old, new = Condition("running", 1.0), Condition("running", 6.0)
    listed = {"caudal-worker-1": new}
    assert with_event(listed, event("destroy")) == listed
    removed = with_event({"caudal-worker-1": old}, event("destroy"))
    assert told("worker-1", RECORD, 4.0, removed["caudal-worker-1"], 7.0).gone
    assert not told("worker-1", RECORD, 5.8, removed["caudal-worker-1"], 7.0).gone


def test_a_new_container_is_like_one_of_its_kind_and_a_medic_only_like_a_medic() -> None:
    names = ["caudal-gateway-1", "caudal-medic-1", "caudal-worker-1", "caudal-worker-2"]
    assert pattern_for(MemberKind.WORKER, names, "caudal") == "caudal-worker-1"
    assert pattern_for(MemberKind.WORKER, names[:2], "caudal") == "caudal-gateway-1"
    assert pattern_for(MemberKind.MEDIC, names[2:], "caudal") is None
    assert pattern_for(MemberKind.GATEWAY, [], "caudal") is None


def test_a_copy_has_another_command_and_number_and_the_same_place() -> None:
    labels = {
        "com.docker.compose.project": "caudal",
        "com.docker.compose.service": "worker-1",
        "com.docker.compose.container-number": "1",
    }
    seen: dict[str, Any] = {
        "Config": {
            "Image": "caudal",
            "Cmd": ["member", "worker-1"],
            "Labels": labels,
            "Hostname": "x",
        },
        "HostConfig": {"Binds": ["caudal_cluster:/cluster"], "NetworkMode": "host"},
    }
    order = copied(seen, "worker-3")
    assert order["Cmd"] == ["member", "worker-3"]
    assert order["Labels"] == {**labels, "com.docker.compose.container-number": "3"}
    assert order["HostConfig"] == seen["HostConfig"]
    assert "Hostname" not in order
    assert seen["Config"]["Cmd"] == ["member", "worker-1"]


def test_a_container_made_anew_has_its_own_settings_and_those_of_the_new_image() -> None:
    own = {"com.docker.compose.service": "worker-1", "com.docker.compose.image": "sha256:old"}
    seen: dict[str, Any] = {
        "Image": "sha256:old",
        "Config": {
            "Image": "caudal:1",
            "Cmd": ["member", "worker-1"],
            "Entrypoint": ["caudal"],
            "Env": ["PATH=/old", "AWS_REGION=here"],
            "Healthcheck": {"Test": ["CMD", "old"]},
            "Labels": {**own, "round": "1"},
            "User": "caudal",
        },
        "HostConfig": {"NetworkMode": "host"},
    }
    before = {
        "Id": "sha256:old",
        "Config": {
            "Cmd": ["--help"],
            "Entrypoint": ["caudal"],
            "Env": ["PATH=/old"],
            "Healthcheck": {"Test": ["CMD", "old"]},
            "Labels": {"round": "1"},
            "User": "caudal",
        },
    }
    order = renewed(seen, before, "caudal:2", {"Id": "sha256:new"})
    assert order == {
        "Image": "caudal:2",
        "Cmd": ["member", "worker-1"],
        "Env": ["AWS_REGION=here"],
        "Labels": {**own, "com.docker.compose.image": "sha256:new"},
        "HostConfig": {"NetworkMode": "host"},
    }


@pytest.mark.parametrize(
    ("name", "state", "age", "is_one"),
    [
        ("/ce46a3008768_caudal-worker-1", "created", 20, True),
        ("/ce46a3008768_caudal-worker-1", "created", 200, False),  # compose was killed
        ("/ce46a3008768_caudal-worker-1", "exited", 20, False),
        ("/ce46a3008768_caudal-worker-11", "created", 20, False),
        ("/ce46a3008768_other-caudal-worker-1", "created", 20, False),
        ("/caudal-worker-1", "created", 20, False),
    ],
)
def test_compose_is_replacing_a_container_while_its_successor_waits(
    name: str, state: str, age: int, is_one: bool
) -> None:
    listed = [{"Names": [name], "State": state, "Created": 1_000}]
    assert is_being_replaced(listed, "caudal-worker-1", 1_000 + age) is is_one


def test_the_compose_file_has_a_container_for_every_member() -> None:
    compose = msgspec.yaml.decode((ROOT / "compose.yaml").read_bytes())
    settings = parse((ROOT / "deploy" / "cluster.toml").read_bytes(), "cluster.toml")
    services = compose["services"]
    members = {one.name: one for one in roster(settings)}
    assert set(services) - set(members) == {"init", "admin", "client"}
    for name, member in members.items():
        service = services[name]
        assert service["container_name"] == f"${{CAUDAL_NAME:-{settings.name}}}-{name}"
        assert service["command"] == ["member", name]
        has_engine = any(":/var/run/docker.sock" in one for one in service["volumes"])
        assert has_engine == (member.kind is MemberKind.MEDIC)
    gateways = ",".join(
        f"http://{one.address}:{one.port}"
        for one in members.values()
        if one.kind is MemberKind.GATEWAY
    )
    assert f"${{CAUDAL_GATEWAYS:-{gateways}}}" in services["client"]["entrypoint"]


def test_medics_depend_on_all_others_so_that_down_stops_them_first() -> None:
    compose = msgspec.yaml.decode((ROOT / "compose.yaml").read_bytes())
    services = compose["services"]
    others = {name for name in services if re.match(r"(gateway|worker)-", name)}
    for name in services:
        if name.startswith("medic-"):
            assert set(services[name]["depends_on"]) == others
