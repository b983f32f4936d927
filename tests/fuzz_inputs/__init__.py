"""Damaged inputs for kernels and decoders: `make fuzz-inputs CASES=N [SEED=K]`.

A case is a number: with the seed it decides what is read, from which honest object it is made, and
how that is damaged. So every case can be run again by itself.
"""
