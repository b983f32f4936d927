"""`python -m bench`: Caudal beside the others, as tables."""

import argparse
import importlib
import importlib.util
import shlex
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from rich.console import Console

from bench import memory, section, split, tasks
from bench.answers import DifferentAnswersError
from bench.race import CONTESTANTS, ContestantFailedError, race
from bench.report import Report
from bench.tables import Table, race_table, sentiment_table

_MEMORY_SCALE, _MEMORY_LIMIT = 1.0, "1GB"


def main() -> int:
    chosen = _parser().parse_args()
    try:
        _bench(chosen)
    except (DifferentAnswersError, ContestantFailedError) as error:
        print(f"bench failed: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.3, help="size of the generated files")
    parser.add_argument("--repeats", type=int, default=7, help="runs of each contestant")
    parser.add_argument("--apps", type=_names, default=("books", "movies"))
    parser.add_argument("--contestants", type=_names, default=CONTESTANTS)
    parser.add_argument("--write", type=Path, help="also measure memory and write this page")
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _bench(chosen: argparse.Namespace) -> None:
    console, notes = Console(), Console(stderr=True)
    began = section.load()
    names = ("caudal", *(name for name in chosen.contestants if name != "caudal"))
    races = []
    for app in chosen.apps:
        result = race(app, chosen.scale, chosen.repeats, lambda line: notes.print(line), names)
        races.append(race_table(result))
        console.print(races[-1].rich())
    sentiment = _sentiment()
    if sentiment is not None:
        console.print(sentiment.rich())
    stages = split.measure()
    console.print(stages.rich())
    task_engine = tasks.measure()
    for table in task_engine:
        console.print(table.rich())
    if chosen.write is not None:
        _write(chosen.write, began, [*races, stages, *task_engine], sentiment)


def _sentiment() -> Table | None:
    """The speeds of `bench/sentiment.py`, where that file is there."""
    if importlib.util.find_spec("bench.sentiment") is None:
        return None
    return sentiment_table(importlib.import_module("bench.sentiment").measure())


def _write(path: Path, began: str, races: Sequence[Table], sentiment: Table | None) -> None:
    peak = memory.measure(_MEMORY_SCALE, _MEMORY_LIMIT)
    print(peak.sentence())
    command = shlex.join(["python", "-m", "bench", *sys.argv[1:]])
    report = Report(date.today(), command, f"{began}, {section.load()}", races, sentiment, peak)
    others = section.kept(path.read_text(encoding="utf-8")) if path.exists() else ""
    path.write_text("\n".join(filter(None, (report.markdown(), others))), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
