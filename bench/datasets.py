"""Generated files, made once and kept in `bench/data/` (outside git)."""

from pathlib import Path

from caudal.generate import generate

SEED = 1
ROOT = Path(__file__).parent / "data"
_READ_BYTES = 1 << 24


def dataset(app: str, scale: float) -> Path:
    """The folder with an application's files at this scale."""
    folder = ROOT / f"{app}-{scale:g}-{SEED}"
    if not folder.is_dir():
        partial = folder.with_suffix(".partial")
        generate(app, scale=scale, seed=SEED, out=partial)
        partial.rename(folder)
    return folder


def total_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def warm_page_cache(folder: Path) -> None:
    """Read the files once, so that no contestant pays for the disk."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            while file.read(_READ_BYTES):
                pass
