"""The client of a cluster: sends files and rows through gateways and fetches the answers."""
