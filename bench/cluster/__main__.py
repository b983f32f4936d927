"""`python -m bench.cluster`: a real cluster beside the embedded engine, PySpark and Dask."""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from bench import idle, section
from bench.answers import DifferentAnswersError
from bench.cluster import growth, pages, questions, rivals, scaling, small_job, spark, tiny, whole
from bench.race import ContestantFailedError
from bench.tables import Table

HEAD = """\
## The cluster

`make bench-cluster` measures this part. A private RabbitMQ, one gateway (two for tiny jobs), two
workers and three medics run on this machine, with their store in a directory, fsync on. The clock
runs from the client's start to its end, when its last result is on its disk. Contestants take
turns, who begins changes from round to round, and all answers were compared. Memory is the kernel's
peak of each process during the runs (`VmHWM`, with descendants)."""

TITLES = {
    "whole": "### All five books queries, beside the embedded engine",
    "rivals": """\
### Beside PySpark and Dask

The same files and Caudal's kernels, sentiment through each system's own functions over Arrow or
partitions; neither has fault tolerance here. "Cluster / it" is the harder comparison: their clock
begins when the system is up and warm, the cluster's with the start of a fresh client process. "With
start-up" adds the time until the system was up. Both read a CSV file with newlines inside quoted
fields as one piece. "Cut and read by hand" is Dask as a scheduler only: byte ranges cut at true
record ends by code of ours, read by pyarrow.""",
    "spark": """\
### The Spark engine

`--engine spark`, hand-written PySpark with the same kernels, each in a session `local[2]`, and the
embedded engine, over the same files. *Two executors* have a core each, in JVMs of their own: there
are three young JVMs on the machine's two cores. The clock begins when the system is up and has
answered three times over tiny files. Then it answers over the same files five times in the same
session or process, whose compilers get used to them: ratios and targets are those of runs 1, 2 and
5. *Growth* is that of run 1.""",
    "scaling": "### From one worker to two",
    "small": "### A small job beside a large one",
    "tiny": """\
### Tiny jobs

One query over a few kilobytes: alone, one job after the other, and by twenty clients at once, which
are threads of one process on the same machine. There are two gateways, and each client knows the
addresses of both.""",
    "growth": "### Growth",
    "pages": """\
### Five open pages

Five clients ask the gateway for what five pages of the running job ask it (events, tasks, samples
of processes, an answer so far), as often. The CPU time is that of the cluster's processes.""",
    "datasets": """\
### Questions to a dataset

The dataset is loaded before the clock runs. Each round has a new one. "After an append" is the same
question to the version that a load of 1% more rows made.""",
    "idle": """\
### Idle

The default cluster on the embedded broker (two gateways, two workers, three medics), left alone for
a minute: user and system time of its processes.""",
}


def main() -> int:
    chosen = _parser().parse_args()
    began = section.load()
    try:
        for name, measure in _parts(chosen).items():
            if name in chosen.only:
                _show(name, measure(), chosen, began)
    except (DifferentAnswersError, ContestantFailedError) as error:
        print(f"bench failed: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.3, help="size of the generated files")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contestant")
    parser.add_argument(
        "--only", type=_names, default=tuple(TITLES), help=f"some of {','.join(TITLES)}"
    )
    parser.add_argument(
        "--growth", type=_scales, default=(), help="scales, e.g. 0.1,0.3,1; else two up to --scale"
    )
    parser.add_argument("--write", type=Path, help="also write this page's parts")
    return parser


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in TITLES:
            raise argparse.ArgumentTypeError(f"{name}: choose some of {','.join(TITLES)}")
    return names


def _scales(text: str) -> tuple[float, ...]:
    return tuple(sorted(map(float, text.split(","))))


def _parts(chosen: argparse.Namespace) -> dict[str, Callable[[], list[Table]]]:
    scale, repeats = chosen.scale, chosen.repeats
    grown = chosen.growth or (round(scale / 3, 4), scale)
    return {
        "whole": partial(whole.measure, scale, repeats),
        "rivals": partial(rivals.measure, scale, repeats),
        "spark": partial(spark.measure, scale, repeats, chosen.growth or spark.GROWTH),
        "scaling": partial(scaling.measure, round(scale / 3, 4), repeats),
        "small": partial(small_job.measure, scale, repeats),
        "tiny": partial(tiny.measure, repeats),
        "growth": partial(growth.measure, grown, repeats),
        "pages": partial(pages.measure, scale, repeats),
        "datasets": partial(questions.measure, scale, repeats),
        "idle": idle.measure,
    }


def _show(name: str, tables: Sequence[Table], chosen: argparse.Namespace, began: str) -> None:
    """Each part is written as soon as it is measured."""
    for table in tables:
        Console().print(table.rich())
    if chosen.write is None:
        return
    section.write(chosen.write, "cluster head", HEAD)
    text = section.measured(TITLES[name], "bench.cluster", began, tables)
    section.write(chosen.write, f"cluster {name}", text)


if __name__ == "__main__":
    sys.exit(main())
