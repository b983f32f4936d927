"""The worker as a process: warm kernels, one loop, logs and figures, a prompt end."""
