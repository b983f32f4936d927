"""The job machine: what a job is, which tasks it needs, and how each of them is done exactly once.

It has no threads, no HTTP and no DuckDB. Gateways, workers and the local
runner are shells around it.
"""
