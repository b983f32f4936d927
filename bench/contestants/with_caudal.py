"""Caudal's embedded engine: all queries together, each file read once."""

from pathlib import Path

from bench.answers import Answers
from caudal.application import find_application
from caudal.embedded.engine import run
from caudal.files.sources import Sources


def answer(app: str, folder: Path) -> Answers:
    results = run(find_application(app), Sources(folder))
    return {name: result.rows() for name, result in results.items()}
