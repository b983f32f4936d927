"""Medics: heartbeats, a leader, restarts. They only provide liveness; correctness never needs
them.
"""
