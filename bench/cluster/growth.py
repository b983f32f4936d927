"""Wall time and memory as the files grow: time in proportion, memory flat."""

from bench.cluster.runs import Run, cluster, middle, peak, tell
from bench.cluster.whole import warm
from bench.datasets import dataset, total_bytes, warm_page_cache
from bench.tables import Table


def measure(scales: tuple[float, ...], repeats: int) -> list[Table]:
    """One cluster, the smallest files first; memory is of each scale's own runs."""
    found: dict[float, list[Run]] = {}
    with cluster() as bench:
        warm(bench)
        for scale in scales:
            folder = dataset("books", scale)
            warm_page_cache(folder)
            found[scale] = [bench.submit(folder) for _ in range(repeats)]
            tell(f"scale {scale:g}: {middle(found[scale]):.2f} s")
    names = sorted(name for name in found[scales[0]][0].peak_bytes if "medic" not in name)
    return [
        Table(
            "time and memory as the files grow",
            ["scale", "MB of CSV", "median s", "s per GB", *(f"{name} MB" for name in names)],
            [_row(scale, runs, names) for scale, runs in found.items()],
        )
    ]


def _row(scale: float, runs: list[Run], names: list[str]) -> list[str]:
    size = total_bytes(dataset("books", scale))
    return [
        f"{scale:g}",
        f"{size / 1e6:,.0f}",
        f"{middle(runs):.2f}",
        f"{middle(runs) / size * 1e9:.1f}",
        *(f"{peak(runs, name) / 1e6:.0f}" for name in names),
    ]
