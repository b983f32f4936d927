"""Administration of a cluster: its folder, settings and members; up, down, doctor and chaos."""
