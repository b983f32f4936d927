"""Stored bytes: what every object holds. docs/formats/ says the same in prose."""
