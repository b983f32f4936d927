"""DuckDB as an oracle: one thread, and without the rules whose answers are wrong."""

from caudal.duck.empty_database import DISABLED_OPTIMIZERS

ORACLE: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "disabled_optimizers": DISABLED_OPTIMIZERS,
}
