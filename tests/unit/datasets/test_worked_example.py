"""The worked example of docs/formats/dataset.md is what the code reads and writes."""

import json
import re
from pathlib import Path

import msgspec

from caudal.datasets.delta import delta_commit
from caudal.datasets.documents import DatasetVersion

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "dataset.md"


def test_the_version_gives_the_commit_that_the_page_shows() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## A worked example")[2]
    shown, log = re.findall("```json\n(.*?)```", text, re.DOTALL)[:2]
    version = msgspec.json.decode(shown, type=DatasetVersion, strict=True)
    assert msgspec.json.decode(msgspec.json.encode(version), type=DatasetVersion) == version
    (file,) = version.changes["reviews"][0].add
    whole = log.replace('"{\\"numRecords\\":196,…}"', json.dumps(file.stats))
    wanted = [json.loads(line) for line in re.split(r"\n(?=\{)", whole.strip())]
    made = delta_commit(version, "reviews").splitlines()
    assert [json.loads(line) for line in made] == wanted
    others = [json.loads(line) for line in delta_commit(version, "books").splitlines()]
    assert [list(one) for one in others] == [["commitInfo"], ["txn"]]
