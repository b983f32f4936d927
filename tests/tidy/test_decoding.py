"""Types are prepared for msgspec in one module only: two threads that do it at once crash."""

import re
from pathlib import Path

import caudal

SOURCE = Path(caudal.__file__).parent
PREPARES = re.compile(r"msgspec\.(json\.|msgpack\.|toml\.)?(Decoder\(|decode\(|convert\()")


def test_only_decoding_prepares_types() -> None:
    found = [path for path in SOURCE.rglob("*.py") if PREPARES.search(path.read_text())]
    assert found == [SOURCE / "decoding.py"]
