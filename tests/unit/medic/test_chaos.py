"""Chaos strikes only where a medic could bring the victim back."""

from pathlib import Path

import pytest

from caudal.errors import UnreachableError
from caudal.medic.chaos import Plan, strike
from caudal.medic.cluster import Cluster
from caudal.medic.founding import write_settings


def test_without_a_living_medic_there_is_no_chaos(tmp_path: Path) -> None:
    write_settings(tmp_path)
    with pytest.raises(UnreachableError, match=r"no medic of .* answers: is it up"):
        strike(Cluster.open(tmp_path), Plan(kills=1))
