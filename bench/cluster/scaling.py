"""A job that is nearly all sentiment, with one worker and with two: two clusters, in turn."""

from contextlib import ExitStack
from functools import partial

from bench.cluster.runs import Bench, Run, cluster, in_turn, middle, require_equal
from bench.cluster.whole import warm
from bench.datasets import dataset, warm_page_cache
from bench.tables import Table, met

# Each text sixteen times over, so that client and gateway do little beside the workers.
SQL = """
SELECT score, count(*) AS reviews, sum(CAST(sentiment(repeat(text, 16)) AS DECIMAL(18, 17))) AS s
FROM reviews GROUP BY score ORDER BY score
"""


def measure(scale: float, repeats: int) -> list[Table]:
    folder = dataset("books", scale)
    with ExitStack() as stack:
        one, two = (stack.enter_context(cluster(workers)) for workers in (1, 2))
        for bench in (one, two):
            warm(bench)
        warm_page_cache(folder)
        words = ["sql", "books", SQL, "--data", str(folder)]
        slow, quick = in_turn(
            *(partial(bench.run, [*words, *bench.gateway]) for bench in (one, two)),
            repeats=repeats,
        )
        unevenness = max(_unevenness(two, run) for run in quick)
    for run in quick:
        require_equal("two workers", run.answers, slow[0].answers)
    speedup = middle(slow) / middle(quick)
    return [
        Table(
            f"sentiment of every review's text, sixteen times over, scale {scale:g}",
            ["what", "measured", "target", "met"],
            [
                ["one worker, median s", f"{middle(slow):.2f}", "", ""],
                ["two workers, median s", f"{middle(quick):.2f}", "", ""],
                ["one / two", f"{speedup:.2f}", "≥ 1.5", met(speedup >= 1.5)],
                [
                    "bytes of the busier worker / its share",
                    f"{unevenness:.2f}",
                    "≤ 1.3",
                    met(unevenness <= 1.3),
                ],
            ],
        )
    ]


def _unevenness(bench: Bench, run: Run) -> float:
    """The most that one worker read, divided by an equal share."""
    shares = bench.bytes_by_worker(run.job)
    return max(shares.values()) * len(shares) / sum(shares.values())
