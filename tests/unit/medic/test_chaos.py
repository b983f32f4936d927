"""Chaos strikes only where a medic could bring the victim back."""

from pathlib import Path

import pytest

from caudal.cluster import chaos
from caudal.cluster.chaos import ChaosPlan, Report, strike
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import MemberKind
from caudal.cluster.write_config import write_settings
from caudal.errors import UnreachableError, UsageError
from caudal.formats.medic_status import FaultKind


def test_without_a_living_medic_there_is_no_chaos(tmp_path: Path) -> None:
    write_settings(tmp_path)
    with pytest.raises(UnreachableError, match=r"no medic of .* answers; it may be down"):
        strike(Cluster.open(tmp_path), ChaosPlan(kills=1))


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        (ChaosPlan(1, (MemberKind.BROKER,)), "no private broker"),
        (ChaosPlan(1, (MemberKind.WORKER, MemberKind.BROKER)), "no private broker"),
        (ChaosPlan(1, (MemberKind.GATEWAY,)), "runs no gateway: it has worker-1, medic-1"),
        (ChaosPlan(1, (MemberKind.MEDIC,)), "medic-1 is the only medic of this host"),
        (ChaosPlan(1, name="medic-1"), "medic-1 is the only medic of this host"),
    ],
)
def test_a_plan_that_could_never_hit_anything_is_refused(
    tmp_path: Path, plan: ChaosPlan, complaint: str
) -> None:
    write_settings(tmp_path, broker="embedded", gateways=0, workers=1, medics=1)
    with pytest.raises(UsageError) as caught:
        strike(Cluster.open(tmp_path), plan)
    assert complaint in str(caught.value)


def test_chaos_ends_if_nothing_can_be_hit_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of this cluster runs, although its medics seem to."""
    write_settings(tmp_path, broker="embedded")
    monkeypatch.setattr(chaos, "_has_medic", lambda *_: True)
    monkeypatch.setattr(chaos, "PATIENCE_SECONDS", 0.0)
    report = strike(Cluster.open(tmp_path), ChaosPlan(1, pause_seconds=0.001))
    assert not report.hits


def test_the_report_counts_all_victims_together_but_not_the_broker() -> None:
    """A broker of its own takes seconds to boot: its time tells nothing about medics."""
    report = Report()
    for kind, way, seconds in (
        (MemberKind.WORKER, FaultKind.KILL, 1.0),
        (MemberKind.MEDIC, FaultKind.KILL, 2.0),
        (MemberKind.GATEWAY, FaultKind.FREEZE, 3.0),
        (MemberKind.BROKER, FaultKind.KILL, 9.0),
    ):
        report.hits[kind, way] += 1
        report.seconds[kind, way] = [seconds]
    told = list(report.lines())
    assert [line for line in told if line.endswith("most 9.0 s")] == [
        "killed broker: 1, well after median 9.0 s, 99% within 9.0 s, most 9.0 s"
    ]
    assert told[-4:] == [
        "killed, all but the broker: well after median 1.5 s, 99% within 2.0 s, most 2.0 s",
        "frozen, all but the broker: well after median 3.0 s, 99% within 3.0 s, most 3.0 s",
        "all but the broker: well after median 2.0 s, 99% within 3.0 s, most 3.0 s",
        "left dead: none",
    ]
