"""Runs the plan of a job on Spark: Spark moves rows and recovers from losses, Caudal computes."""
