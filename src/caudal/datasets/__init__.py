"""Datasets: cleaned tables as Parquet files, in numbered versions. docs/formats/dataset.md."""
