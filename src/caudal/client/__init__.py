"""The client of a cluster: sends files and rows through gateways, and brings answers back."""
