"""The benchmark of a real cluster: `python -m bench.cluster --help`, `make bench-cluster`."""
