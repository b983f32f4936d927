"""The job machine: which tasks a job needs, and how each of them gets exactly one output.

It has no threads, no HTTP and no DuckDB. Gateways, workers and the local runner are shells around
it.
"""
