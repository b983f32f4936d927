"""The benchmark: Caudal beside DuckDB, Polars and pandas. `python -m bench --help`."""
