"""Caudal's Spark engine on two executors of one core, each in a JVM of its own."""

from functools import partial

from bench.cluster_rivals import with_caudal_spark

opened = partial(with_caudal_spark.opened, "local-cluster[2,1,1024]")
