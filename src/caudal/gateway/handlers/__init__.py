"""Handlers of the gateway, one function per operation."""
