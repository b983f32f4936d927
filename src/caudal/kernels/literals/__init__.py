"""The SQL functions `names(text)` and `items(text)` over Arrow columns of Python literals."""

from caudal.kernels.literals.columns import items, names

__all__ = ["items", "names"]
