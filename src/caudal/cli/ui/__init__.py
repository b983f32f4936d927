"""The SQL page without a cluster."""
