"""Parts of every long-lived process: logs, signals, ticks, metrics, real time."""
