"""Everything that runs SQL: the only room that imports DuckDB."""
