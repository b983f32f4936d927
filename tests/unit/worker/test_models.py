"""Models of cluster.toml, loaded before the first task."""

from pathlib import Path

import pytest
from tests.harness.cluster_folder import laid_out

from caudal.process.heart import Heart
from caudal.process.pulse import Pulse
from caudal.worker.models import ready_models


def test_one_that_cannot_be_loaded_is_said_and_the_others_are_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = ready_models([f"transformers:{tmp_path / 'absent'}", "lexicon"], None)
    assert list(found) == ["lexicon"]
    assert [one.getMessage() for one in caplog.records] == ["a sentiment model cannot be loaded"]


def test_while_they_load_medics_are_told_that_there_may_be_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = laid_out(tmp_path, medics=1, workers=1)
    worker = next(one for one in cluster.here if one.name == "worker-1")
    heart = Heart(cluster.write_heart(worker, 1))
    pulses: list[Pulse] = []
    pulse = heart._pulse

    def noted(ticks: int, detail: str) -> Pulse:
        pulses.append(pulse(ticks, detail))
        return pulses[-1]

    monkeypatch.setattr(heart, "_pulse", noted)
    try:
        assert list(ready_models(["lexicon"], heart)) == ["lexicon"]
        assert all(one.quiet > 2.0 and not one.ready for one in pulses)
        assert pulses
        assert pulse(1, "").quiet == 0.0
    finally:
        heart.close()
