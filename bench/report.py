"""docs/benchmarks.md: the tables, and all that is needed to get them again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from bench.machine import describe
from bench.memory import Peak
from bench.tables import Table, facts

_INTRODUCTION = """\
# Benchmarks

`make bench` measures all of this and writes this page, but for the parts on the cluster and on
series, which `make bench-cluster` and `make bench-series` measure and write. Do not edit it by
hand."""

_RULES = """\
## All five queries of an application

Every contestant runs in a process of its own, over the same generated files, which are in the
page cache. The clock runs from just before the files are read to the last answer; imports and
compiled kernels are ready by then. Contestants take turns, and who begins changes from round to
round. All answers were compared row by row and are the same. All use Caudal's kernels for
sentiment and for lists. "caudal / it" is Caudal's median wall time divided by the contestant's.

- `caudal`: the embedded engine, all queries together, with all its reject checks.
- `duckdb`: the same SQL in plain DuckDB over views on the CSV files, query by query, all cores.
- `polars`: hand-written, streaming, each file scanned once for all queries, all cores.
- `pandas`: hand-written, each file read once, needed columns only.

Polars and pandas cannot tell a record that ends early from one whose last field is empty; they
count both as malformed, which gives the same answers only because the generated files hold none
of the latter. Caudal and DuckDB count fields."""


@dataclass(frozen=True)
class Report:
    """Everything one run of the benchmark found out."""

    day: date
    command: str
    busy: str
    races: Sequence[Table]
    sentiment: Table | None
    peak: Peak | None

    def markdown(self) -> str:
        parts = [_INTRODUCTION, facts(self._facts()), _RULES]
        for table in self.races:
            parts += [f"### {table.title}", table.markdown()]
        if self.sentiment is not None:
            parts += ["## Sentiment", self.sentiment.markdown()]
        if self.peak is not None:
            parts += ["## Memory limit", self.peak.sentence()]
        return "\n\n".join(parts) + "\n"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("Date", self.day.isoformat()),
            *describe().items(),
            ("Load average when it began and ended", self.busy),
            ("Command", f"`{self.command}`"),
        ]
