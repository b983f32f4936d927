"""`caudal generate`: synthetic files with the structure of the originals."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from caudal.cli.progress import watch
from caudal.generate import generate as generate_files


def generate(
    app: Annotated[str, typer.Argument(help="movies or books")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write into.")],
    scale: Annotated[float, typer.Option("--scale", help="1 is the size of the originals.")] = 0.01,
    seed: Annotated[int, typer.Option("--seed", help="Different seeds give different data.")] = 1,
) -> None:
    """Write synthetic files with the exact structure of the public originals.

    Example: `caudal generate books --scale 0.1 --seed 7 --out data`
    """
    console = Console(stderr=True)
    began = time.perf_counter()
    with watch(console) as progress:
        files = generate_files(app, scale=scale, seed=seed, out=out, progress=progress.records)
    seconds = time.perf_counter() - began
    for file in files:
        console.print(
            f"{file.path}: {file.rows:,} rows, {file.bytes / 1e6:,.1f} MB", highlight=False
        )
    total = sum(file.bytes for file in files)
    console.print(f"{total / 1e6 / seconds:,.0f} MB/s", highlight=False)
