"""The split engine: the plan that a cluster runs, executed in this process.

It is an ordinary job (job.py) in a temporary store: a folder without fsync, which is deleted at the
end. The result of a step never depends on which worker ran it, or when.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from caudal.files.sources import Sources
from caudal.local.borrowed import BorrowingStore
from caudal.local.job import LocalJob, LocalRequest, run_and_settle
from caudal.model import Application, ParameterValue
from caudal.results.answers import Answers
from caudal.run_options import Progress, RunOptions
from caudal.store import open_store

_JOB_ID = "run"


def run(
    app: Application,
    sources: Sources,
    queries: Sequence[str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Answer the chosen queries by scan, fold and finish, with the rows of the embedded engine."""
    request = LocalRequest.of(app, sources, queries, parameters, options, progress)
    return run_and_settle(request, run_once)


def run_once(request: LocalRequest) -> Answers:
    """Run one job in a temporary folder; the answers name the queries that failed."""
    with tempfile.TemporaryDirectory(prefix="caudal-") as folder:
        store = BorrowingStore(open_store(f"{folder}/store", fsync=False), kept=None)
        return LocalJob(store, _JOB_ID, request, Path(folder)).answers()
