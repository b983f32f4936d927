"""The gateway process: what clients ask over HTTP, and the loops that look after jobs."""
