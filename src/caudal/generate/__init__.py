"""Synthetic data: files with the format, the size and the irregularities of public datasets."""

from caudal.generate.generator import Generated, generate

__all__ = ["Generated", "generate"]
