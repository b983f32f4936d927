"""Hashes of values: which rows meet in which partition, today and in every later version; and
filters that know keys by their hashes."""

from caudal.kernels.hashing.filters import KeyFilter, key_words, whole
from caudal.kernels.hashing.rows import HASH_VERSION, hash_rows, partition_of

__all__ = ["HASH_VERSION", "KeyFilter", "hash_rows", "key_words", "partition_of", "whole"]
