"""A gateway on memory adapters, for its tests."""
