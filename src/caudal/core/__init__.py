"""Decisions without I/O: tasks and readiness, the life of a job, interval sets."""
