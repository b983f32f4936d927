"""Chaos strikes only where a medic could bring the victim back."""

from pathlib import Path

import pytest

from caudal.cluster.chaos import ChaosPlan, strike
from caudal.cluster.folder import Cluster
from caudal.cluster.write_config import write_settings
from caudal.errors import UnreachableError


def test_without_a_living_medic_there_is_no_chaos(tmp_path: Path) -> None:
    write_settings(tmp_path)
    with pytest.raises(UnreachableError, match=r"no medic of .* answers; it may be down"):
        strike(Cluster.open(tmp_path), ChaosPlan(kills=1))
