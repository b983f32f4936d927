"""The optimiser's rules are switched in one module only: one rule must stay off (ADR 74)."""

from pathlib import Path

import caudal

SOURCE = Path(caudal.__file__).parent
SWITCHING = ["duck/empty_database.py", "duck/sandbox.py"]  # the second opens databases


def test_only_one_module_switches_rules() -> None:
    found = [path for path in SOURCE.rglob("*.py") if '"disabled_optimizers"' in path.read_text()]
    assert sorted(str(path.relative_to(SOURCE)) for path in found) == SWITCHING
    setting = [path for path in SOURCE.rglob("*.py") if "SET disabled_" in path.read_text()]
    assert setting == [SOURCE / "duck/empty_database.py"]
