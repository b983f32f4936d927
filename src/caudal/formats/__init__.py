"""The formats of all stored objects. docs/formats/ describes them in prose."""
