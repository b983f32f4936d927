"""Medics: heartbeats, a leader, restarts. For liveness only: without them all stays correct."""
