"""The tests, by what they need.

unit         one part, in this process: no other process is started (an audit hook refuses it)
contract     one suite for every store, and one for every broker, the real ones too
integration  several parts together, with real children and servers
acceptance   real clusters and commands, killed and frozen for real
simulation   the loops of all processes in one, under seeded faults
property     random queries against DuckDB
fuzz_inputs  damaged inputs, read in a child
tidy         rules of the source tree
harness      what they share; corpus, fuzz and oracle: what they compare with
"""
