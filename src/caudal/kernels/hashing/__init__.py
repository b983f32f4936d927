"""Hashes of values, which decide the partition of a row and are the same in every version, and
filters of keys by their hashes."""

from caudal.kernels.hashing.filters import KeyFilter, key_words, whole
from caudal.kernels.hashing.rows import HASH_VERSION, hash_rows, partition_of

__all__ = ["HASH_VERSION", "KeyFilter", "hash_rows", "key_words", "partition_of", "whole"]
