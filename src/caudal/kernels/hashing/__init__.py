"""The partitioning hash: which rows meet in which partition, today and in every later version."""

from caudal.kernels.hashing.rows import HASH_VERSION, hash_rows, partition_of

__all__ = ["HASH_VERSION", "hash_rows", "partition_of"]
