"""The worker as a process: it compiles kernels, runs the loop, logs, counts, and ends promptly."""
