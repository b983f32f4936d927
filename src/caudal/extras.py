"""The packages that only some commands need, and the extras that bring them.

`pyproject.toml` lists the same packages; `tests/tidy/test_extras.py` compares the two.
"""

import importlib.util

from caudal.errors import MissingPackageError

EXTRAS = {
    "cluster": ("aio_pika", "httpx", "prometheus_client", "starlette", "uvicorn"),
    "s3": ("obstore",),
    "spark": ("pyspark",),
    "plot": ("matplotlib",),
    "transformers": ("torch", "transformers"),
}


def require(extra: str, what: str) -> None:
    """Raise MissingPackageError, with the command that mends it, if an extra is not installed."""
    missing = [name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise missing_extra(extra, what, missing)


def missing_extra(extra: str, what: str, missing: list[str]) -> MissingPackageError:
    """Return the error for packages of an extra that are not installed."""
    return MissingPackageError(f"{what} needs {', '.join(missing)}: pip install 'caudal[{extra}]'")


def explained(error: ModuleNotFoundError) -> MissingPackageError | None:
    """Return the error that says which extra brings a missing module; None if none does."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            return missing_extra(extra, "this", [package])
    return None
