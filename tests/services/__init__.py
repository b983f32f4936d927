"""Real services that tests start for themselves, on free ports and in folders of their own."""
