"""What a large cluster costs, from measured units and a simulated crowd: `make scale`."""
