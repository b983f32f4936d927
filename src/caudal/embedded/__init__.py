"""The embedded engine: DuckDB over whole tables, in this process."""
