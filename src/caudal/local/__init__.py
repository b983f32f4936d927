"""Runs jobs inside this process, for `--engine split` and for `--store`."""
