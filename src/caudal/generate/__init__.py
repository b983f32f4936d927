"""Synthetic data: files with the shape, the size and the oddities of the public originals."""

from caudal.generate.generator import Generated, generate

__all__ = ["Generated", "generate"]
