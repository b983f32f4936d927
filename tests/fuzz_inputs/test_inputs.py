"""A few thousand damaged inputs with every run of the tests; `make fuzz-inputs` runs more."""

from random import Random

import pytest

from tests.fuzz_inputs import run, targets
from tests.fuzz_inputs.damage import damaged, damaged_json, forged

CASES, SEED = 6_000, 20


def test_damaged_inputs_are_read_or_refused() -> None:
    found = run.fuzz(CASES, SEED)
    assert found.faults == []
    assert found.cases == CASES == found.counts.total()
    read = {name for name in found.counts if not name.endswith(" refused")}
    assert read == set(targets.TARGETS)  # some of each kind pass: the damage is not all too coarse


@pytest.mark.parametrize("harm", [damaged, damaged_json, forged])
def test_a_seed_decides_the_damage(harm: object) -> None:
    text = b'{"a": [1, 2, {"b": "some text"}], "c": 12345678}'
    assert callable(harm)
    made = [[harm(text, Random(f"{seed}/1")) for seed in range(50)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 20


def test_a_crash_and_an_unexpected_error_name_their_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent goes on behind the case that killed its child."""
    broken = (
        "import sys, os, struct, json\n"
        "seed, first, end, path = sys.argv[1:]\n"
        "if int(first) == 0:\n"
        "    print(json.dumps({'case': 3, 'target': 'csv', 'error': 'KeyError', 'trace': ''}))\n"
        "    sys.stdout.flush()\n"
        "    open(path, 'wb').write(struct.pack('<q', 7))\n"
        "    os.abort()\n"
        "print(json.dumps({'counts': {'csv': int(end) - int(first)}, 'peak_mib': 1}))\n"
    )
    monkeypatch.setattr(run, "CHILD", ["-c", broken])
    found = run.fuzz(20, 1)
    assert [fault.split("\n")[0] for fault in found.faults] == [
        "seed 1 case 3 (csv): KeyError",
        "seed 1 case 7: SIGABRT",
    ]
    assert found.counts == {"csv": 12}
