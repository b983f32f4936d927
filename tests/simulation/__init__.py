"""The task engine in one process under faults, fully determined by a seed. Start at `run.py`."""
