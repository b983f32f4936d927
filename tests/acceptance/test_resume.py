"""`caudal run --engine split --store DIR`, killed with SIGKILL at many moments and resumed.

The moments are drawn from a seed: not seconds, but how many objects the store holds when the kill
comes, seen by looking again and again. `CAUDAL_KILLS=N` kills more often, `CAUDAL_SEED=K` at other
moments.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import pytest

from caudal.generate import generate
from caudal.store.keys import OWN
from tests.harness.waiting import GUARD_SECONDS

KILLS = int(os.environ.get("CAUDAL_KILLS", "6"))
SEED = int(os.environ.get("CAUDAL_SEED", "1"))
_LOOK_SECONDS = 0.001
FORMATS = ("json", "csv", "parquet")


@dataclass(frozen=True)
class Place:
    """Files, a store, and where the answers go."""

    data: Path
    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def command(self, form: str, *more: str) -> list[str]:
        return [
            *(sys.executable, "-m", "caudal", "run", "books", "--data", str(self.data)),
            *("--out", str(self.out), "--format", form, "--rejects", str(self.out / "rejects")),
            *("--batch-size", "32KiB", "--partitions", "3", *more),
        ]

    def stored(self, form: str, *more: str) -> list[str]:
        return self.command(form, "--engine", "split", "--store", str(self.store), *more)

    def written(self) -> dict[str, bytes]:
        """Answers and rejects; not what a killed writer left of a file that never came to be."""
        files = sorted(path for path in self.out.iterdir() if not path.name.endswith(".partial"))
        return {path.name: path.read_bytes() for path in files}

    def holds(self, count: int) -> bool:
        return len(self.objects()) >= count

    def objects(self) -> dict[str, int]:
        """What the store holds: names and inodes. Files come and go while it is looked at.

        Without the store's own: a probe that was killed leaves files, which `sweep` removes later.
        """
        found: dict[str, int] = {}
        for folder, folders, names in os.walk(self.store):
            folders[:] = [name for name in folders if not name.startswith(OWN)]
            for name in names:
                path = Path(folder) / name
                try:
                    found[str(path.relative_to(self.store))] = path.stat().st_ino
                except FileNotFoundError:
                    continue
        return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resume") / "data"
    generate("books", scale=0.0008, seed=3, out=folder)
    return folder


@pytest.fixture(scope="module")
def undisturbed(
    data: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, bytes]]:
    """By format: what a run writes that nobody kills. The rows are those of the embedded engine."""
    outputs = {}
    for form in FORMATS:
        place = Place(data, tmp_path_factory.mktemp(f"undisturbed-{form}"))
        finish(place.stored(form))
        assert place.objects() == {}
        outputs[form] = place.written()
    embedded = Place(data, tmp_path_factory.mktemp("embedded"))
    finish(embedded.command("json"))
    assert embedded.written() == outputs["json"]
    return outputs


def finish(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=GUARD_SECONDS)


def killed(command: list[str], now: Callable[[], bool]) -> bool:
    """Run it, and kill it with SIGKILL as soon as `now` says so; False if it ended before."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + GUARD_SECONDS
    try:
        while process.poll() is None:
            assert time.monotonic() < deadline, "the run hangs"
            if now():
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(_LOOK_SECONDS)
        _, words = process.communicate(timeout=GUARD_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode in (0, -signal.SIGKILL), words.decode()
    return process.returncode != 0


def growing(chance: Random, most: int) -> Iterator[int]:
    """How many objects the store shall hold at each kill: more and more."""
    yield from sorted(chance.randrange(most + 1) for _ in range(KILLS))


@pytest.mark.long
def test_killed_again_and_again_it_ends_with_the_same_bytes(
    data: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    chance, place = Random(SEED), Place(data, tmp_path)
    before: dict[str, int] = {}
    kills = 0
    for moment in growing(chance, most=100):
        if not killed(place.stored("json", "--resume"), partial(place.holds, moment)):
            break
        kills += 1
        after = place.objects()
        assert before.items() <= after.items(), "an object was lost, or made again"
        before = after
    finish(place.stored("json", "--resume"))
    assert place.written() == undisturbed["json"]
    assert place.objects() == {}
    assert kills >= KILLS // 2
    print(f"{kills} kills, the last with {len(before)} objects in the store")


@pytest.mark.long
def test_killed_at_its_end_it_ends_with_the_same_bytes(
    data: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    """At the last objects, when the first answer is written, and while it cleans up."""
    place = Place(data, tmp_path)
    rejects = place.out / "rejects"
    moments: list[tuple[str, Callable[[], bool]]] = [
        ("csv", lambda: any("results/" in name for name in place.objects())),
        ("csv", lambda: any(name.endswith("outcome.json") for name in place.objects())),
        ("parquet", lambda: (place.out / "q1.parquet").exists()),
        ("parquet", rejects.exists),
        ("json", lambda: rejects.exists() and 0 < len(place.objects()) < 60),
    ]
    kills = sum(killed(place.stored(form, "--resume"), moment) for form, moment in moments)
    for form in FORMATS:
        finish(place.stored(form, "--resume"))
        found = {name: place.written()[name] for name in undisturbed[form]}
        assert found == undisturbed[form]
    assert place.objects() == {}
    assert kills


def test_without_resume_an_unfinished_run_is_said_and_so_is_a_file_that_changed(
    data: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "data"
    copy.mkdir()
    for path in data.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    place = Place(copy, tmp_path)
    assert killed(place.stored("json"), lambda: len(place.objects()) >= 20)
    again = subprocess.run(place.stored("json"), capture_output=True, timeout=GUARD_SECONDS)
    assert again.returncode == 2
    assert b"add --resume to go on with it, or give another --store" in again.stderr
    path = copy / "books_data.csv"
    path.write_bytes(path.read_bytes().replace(b"the", b"The"))
    command = place.stored("json", "--resume")
    changed = subprocess.run(command, capture_output=True, timeout=GUARD_SECONDS)
    assert changed.returncode == 4
    assert b"the file changed since the unfinished run began" in changed.stderr
