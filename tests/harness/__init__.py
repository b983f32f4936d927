"""What tests share: real services, processes and clusters, stores that misbehave, clocks, waits."""
